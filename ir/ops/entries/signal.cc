// Signals. Source: ONNX DFT (17, 20), STFT (17), MelWeightMatrix (17), BlackmanWindow, HammingWindow, HannWindow (17).
#include "ir/ops/attributes.h"
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kSignalRank{"signal_rank", ConstraintKind::kRank,
                             "the signal has at least 2 axes, the last one of 1 or 2 for real or complex"};
const Constraint kSignalDtype{"signal_dtype", ConstraintKind::kAttribute,
                              "output_datatype is a dtype that the operator gives"};
const Constraint kSignalAxis{"signal_axis", ConstraintKind::kAxisRange, "-rank <= axis < rank, and not the last axis"};
const Constraint kSignalLength{"signal_length", ConstraintKind::kDomain, "lengths and steps are at least 1"};
const Constraint kSignalFrame{"signal_frame", ConstraintKind::kShapes,
                              "the window has frame_length elements, and the signal at least as many"};

/// The one element of a scalar operand: as a dim, unknown where it is not tracked.
Dim element_of(const Inference& in, int operand) {
  const auto elements = in.elements(operand);
  return elements && elements->size() == 1 ? elements->front() : Dim(Unknown::kDataDependent);
}

bool check_positive(Inference& in, int operand, Dim length, std::string_view what) {
  if (length.is_unknown() || in.dims().bounds(length).hi >= 1) return true;
  in.fail(kSignalLength, {operand}, {"{} {} is {}, at least 1 needed", what, OperandRef(operand), length});
  return false;
}

/// Real or complex: an extent of 1 or 2 at the end.
bool check_signal(Inference& in, std::size_t lowest_rank) {
  DimPool& pool = in.dims();
  const auto signal = in.shape(0);
  if (!signal) return true;
  const bool known = !signal->empty();
  const Bounds parts = known ? pool.bounds(signal->back()) : Bounds{0, 0};
  if (known && signal->size() >= lowest_rank && parts.hi >= 1 && parts.lo <= 2) return true;
  in.fail(kSignalRank, {0},
          {"{} has shape {}, {} needs at least {} axes, the last one of 1 or 2", OperandRef(0), *signal, in.call().name,
           lowest_rank});
  return false;
}

void dft(Inference& in) {
  DimPool& pool = in.dims();
  const auto signal = in.shape(0);
  if (!signal || !check_signal(in, 2)) return;
  const auto rank = static_cast<std::int64_t>(signal->size());
  const bool inverse = in.int_attribute("inverse", 0) != 0, onesided = in.int_attribute("onesided", 0) != 0;
  Dims result = copy_dims(*signal);
  result.back() = pool.constant(inverse && onesided ? 1 : 2);

  std::optional<std::int64_t> axis = -2;
  if (in.opset() < 20) {
    axis = in.int_attribute("axis", 1);
  } else if (in.has("axis")) {
    if (!check_rank(in, 2, {0}, kSignalRank)) return;
    axis = in.constant("axis");
  }
  if (!axis) {
    // Any axis but the last may change.
    for (std::size_t i = 0; i + 1 < result.size(); ++i) result[i] = Dim(Unknown::kDataDependent);
    return in.set_shape(0, result);
  }
  if (*axis < -rank || *axis >= rank - 1 || *axis == -1) {
    in.fail(kSignalAxis, {0}, {"axis {} is not a signal axis of {} of rank {}", Axis(*axis), OperandRef(0), rank});
    for (std::size_t i = 0; i + 1 < result.size(); ++i) result[i] = Dim(Unknown::kTainted);
    return in.set_shape(0, result);
  }
  const auto along = static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis);
  const Dim extent = (*signal)[along], one = pool.constant(1), two = pool.constant(2);
  Dim length = inverse && onesided ? pool.mul(two, pool.sub(extent, one)) : extent;
  if (in.has(1)) {
    length = element_of(in, 1);
    if (!check_positive(in, 1, length, "length")) length = Dim(Unknown::kTainted);
  }
  result[along] = onesided && !inverse ? pool.add(pool.floor_div(length, two), one) : length;
  in.set_shape(0, result);
}

void stft(Inference& in) {
  DimPool& pool = in.dims();
  const Dim one = pool.constant(1), two = pool.constant(2);
  Dims result = unknown_dims(4, Unknown::kDataDependent);
  result[3] = two;
  const auto signal = in.shape(0);
  // Two axes are real numbers to onnxruntime, and neither the checker nor ONNX's inference asks for the last one; its
  // reference implementation fails.
  const bool is_real = signal && signal->size() == 2;
  if (signal && !is_real && (!check_signal(in, 3) || !check_rank(in, 0, {3}, kSignalRank)))
    return in.set_shape(0, result);
  result[0] = dim_of(in, 0, 0);
  const Dim samples = dim_of(in, 0, 1), step = element_of(in, 1), window = dim_of(in, 2, 0);
  Dim frame = samples;
  if (in.has(3)) {
    frame = element_of(in, 3);
    if (!check_positive(in, 3, frame, "frame length")) frame = Dim(Unknown::kTainted);
    check_shape(in, 2, Dims{frame}, kSignalFrame, "window");
    frame = better(pool, frame, window);
  } else if (in.has(2)) {
    check_rank(in, 2, {1}, kSignalFrame);
    if (!check_positive(in, 2, window, "length of the window")) return in.set_shape(0, result);
    frame = window;
  } else if (!check_positive(in, 0, samples, "length of the signal")) {
    return in.set_shape(0, result);
  }
  const bool steps = check_positive(in, 1, step, "frame step");
  const Dim room = pool.sub(samples, frame);
  if (!room.is_unknown() && pool.bounds(room).hi < 0) {
    in.fail(kSignalFrame, {0}, {"frames of {} samples over {}, which has {}", frame, OperandRef(0), samples});
  } else if (steps && pool.bounds(step).lo >= 1) {
    result[1] = pool.add(pool.floor_div(room, step), one);
  }
  result[2] = in.int_attribute("onesided", 1) != 0 ? pool.add(pool.floor_div(frame, two), one) : frame;
  in.set_shape(0, result);
}

void set_output_datatype(Inference& in) {
  in.set_dtype(0, DType::kFloat32);
  if (const auto dtype = dtype_attribute(in, "output_datatype", kSignalDtype)) in.set_dtype(0, *dtype);
}

void mel_weight_matrix(Inference& in) {
  DimPool& pool = in.dims();
  set_output_datatype(in);
  const Dim bins = element_of(in, 0), length = element_of(in, 1);
  in.set_shape(0, Dims{pool.add(pool.floor_div(length, pool.constant(2)), pool.constant(1)), bins});
}

void window(Inference& in) {
  set_output_datatype(in);
  in.set_shape(0, Dims{element_of(in, 0)});
}

const RegisterOps kRegisterSignal{
    OpEntry("DFT")
        .host("dft_length")
        .host("axis")
        .infer(dft)
        .constraint(kSignalRank)
        .constraint(kSignalAxis)
        .constraint(kSignalLength),
    OpEntry("STFT")
        .host("frame_step")
        .host("frame_length")
        .infer(stft)
        .constraint(kSignalRank)
        .constraint(kSignalLength)
        .constraint(kSignalFrame),
    // Five numbers that say what matrix to make, as Range's say what list: there is no data. No provider of onnxruntime
    // but the CPU's has a kernel, and torchaudio.functional.melscale_fbanks takes numbers.
    OpEntry("MelWeightMatrix")
        .host("num_mel_bins")
        .host("dft_length")
        .host("sample_rate")
        .host("lower_edge_hertz")
        .host("upper_edge_hertz")
        .infer(mel_weight_matrix)
        .constraint(kSignalDtype),
    OpEntry("BlackmanWindow").host("size").infer(window).constraint(kSignalDtype),
    OpEntry("HammingWindow").host("size").infer(window).constraint(kSignalDtype),
    OpEntry("HannWindow").host("size").infer(window).constraint(kSignalDtype),
};

}  // namespace
}  // namespace tensorlint::ops
