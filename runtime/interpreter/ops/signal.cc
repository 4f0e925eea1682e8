// Signals. Source: ONNX DFT (opsets 17, 20), STFT (17), MelWeightMatrix (17), BlackmanWindow, HammingWindow, HannWindow
// (17). Transforms are mixed-radix FFTs (Cooley and Tukey, 1965) in float64 with tabulated roots of unity.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <span>

#include <fmt/ranges.h>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

using Complex = std::complex<double>;

/// Without the checks for infinities of operator*.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Transforms of one length.
class Fourier {
 public:
  Fourier(std::size_t length, bool inverse, Memory& memory)
      : length_(length),
        roots_(length, memory.resource()),
        scratch_(length, memory.resource()),
        result_(length, memory.resource()) {
    const double sign = inverse ? 2 : -2;
    for (std::size_t k = 0; k < length; ++k) {
      const double angle = sign * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      roots_[k] = {std::cos(angle), std::sin(angle)};
    }
  }
  /// In place; not divided by the length.
  void transform(List<Complex>& line) {
    if (length_ > 0) recurse(line.data(), 1, length_, result_.data());
    line.swap(result_);
  }

 private:
  /// Of count elements `stride` apart, where stride * count is the length.
  void recurse(const Complex* in, std::size_t stride, std::size_t count, Complex* out) {
    if (count == 1) {
      *out = *in;
      return;
    }
    std::size_t factor = count % 4 == 0 ? 4 : 2;
    while (count % factor != 0) factor = factor * factor > count ? count : factor + 1;
    const std::size_t part = count / factor;
    for (std::size_t r = 0; r < factor; ++r) recurse(in + r * stride, stride * factor, part, out + r * part);
    // Column k of the parts gives the results k, k + part, k + 2 part, ...
    Complex* const column = scratch_.data();
    for (std::size_t k = 0; k < part; ++k) {
      for (std::size_t r = 0; r < factor; ++r) column[r] = product(out[r * part + k], roots_[r * k * stride]);
      combine(column, factor, k, part, out);
    }
  }
  void combine(const Complex* column, std::size_t factor, std::size_t k, std::size_t part, Complex* out) {
    if (factor == 2) {
      out[k] = column[0] + column[1];
      out[k + part] = column[0] - column[1];
      return;
    }
    const std::size_t turn = length_ / factor;
    for (std::size_t q = 0; q < factor; ++q) {
      Complex sum = column[0];
      std::size_t at = 0;
      for (std::size_t r = 1; r < factor; ++r) {
        at += q;
        if (at >= factor) at -= factor;
        sum += product(column[r], roots_[at * turn]);
      }
      out[k + q * part] = sum;
    }
  }

  std::size_t length_;
  List<Complex> roots_, scratch_, result_;
};

/// Where the lines of a tensor lie whose last axis has 1 or 2 parts: real and imaginary.
struct Lines {
  AxisSplit split;  ///< around the axis of the signal; `inner` counts parts too
  std::size_t parts = 1;
};

Lines lines_of(const HostTensor& tensor, std::size_t axis) {
  return {split_at(tensor.extents(), axis), static_cast<std::size_t>(tensor.extents().back())};
}

/// The spectrum of a real signal, of which `line` has the first half.
void complete(List<Complex>& line) {
  const std::size_t n = line.size();
  if (n == 0) return;
  line[0] = line[0].real();
  if (n % 2 == 0) line[n / 2] = line[n / 2].real();
  for (std::size_t k = n / 2 + 1; k < n; ++k) line[k] = std::conj(line[n - k]);
}

/// Every element is a sum of all those of the signal, with factors up to 1.
void set_magnitude(List<Complex>& line) {
  double sum = 0;
  for (const Complex& each : line) sum += std::fabs(each.real()) + std::fabs(each.imag());
  std::ranges::fill(line, Complex(sum, sum));
}

void dft(Evaluation& e) {
  const HostTensor signal = to_float64(e.operand(0), e.memory());
  const bool inverse = e.in().int_attribute("inverse", 0) != 0, onesided = e.in().int_attribute("onesided", 0) != 0;
  const std::int64_t given = e.opset() < 20 ? e.in().int_attribute("axis", 1) : (e.has(2) ? e.integer(2) : -2);
  const auto rank = static_cast<std::int64_t>(signal.rank());
  // The last axis holds real and imaginary parts.
  if (rank < 2 || given < -rank || given >= rank || given == -1 || given == rank - 1)
    e.fail("axis {} of a signal of rank {} cannot be transformed", given, rank);
  const std::size_t axis = from_front(given, signal.rank());
  HostTensor& result = e.result();
  if (signal.size() == 0) e.fail("the signal has no elements");
  if (e.has(1) && e.integer(1) < 1) e.fail("the length {} is not positive", e.integer(1));
  const Lines from = lines_of(signal, axis), to = lines_of(result, axis);
  std::size_t length = inverse && onesided ? 2 * (from.split.extent - 1) : from.split.extent;
  if (e.has(1)) length = static_cast<std::size_t>(e.integer(1));
  if (length == 0) e.fail("a spectrum of one element has no signal");
  const std::size_t read = std::min(from.split.extent, inverse && onesided ? length / 2 + 1 : length);
  HostTensor wide(DType::kFloat64, result.extents(), e.memory());
  const double* const in = signal.as<double>().data();
  double* const out = wide.as_mutable<double>().data();
  if (from.split.outer != to.split.outer || from.split.inner / from.parts != to.split.inner / to.parts ||
      to.split.extent > length)
    e.fail("a signal of shape [{}] has no transform of shape [{}]", fmt::join(signal.extents(), ", "),
           fmt::join(result.extents(), ", "));
  Fourier fourier(length, inverse, e.memory());
  const double scale = inverse ? 1 / static_cast<double>(length) : 1;
  List<Complex> line(length, e.memory().resource());
  for (std::size_t o = 0; o < from.split.outer; ++o)
    for (std::size_t i = 0; i < from.split.inner / from.parts; ++i) {
      std::ranges::fill(line, 0);
      for (std::size_t k = 0; k < read; ++k) {
        const double* const at = in + (o * from.split.extent + k) * from.split.inner + i * from.parts;
        line[k] = {at[0], from.parts == 2 ? at[1] : 0};
      }
      if (inverse && onesided) complete(line);
      e.asks_amplitude() ? set_magnitude(line) : fourier.transform(line);
      for (std::size_t k = 0; k < to.split.extent; ++k) {
        double* const at = out + (o * to.split.extent + k) * to.split.inner + i * to.parts;
        at[0] = line[k].real() * scale;
        if (to.parts == 2) at[1] = line[k].imag() * scale;
      }
    }
  store(result, 0, result.size(), out);
}

/// Of a length that is no power of two, engines make angles of up to pi n (Bluestein's chirps): the errors of their
/// factors are n roundoffs, and 4 sqrt(terms) of those are n, too.
double terms_of_dft(Evaluation& e) {
  std::int64_t length = 1;
  for (const std::int64_t extent : e.operand(0).extents()) length = std::max(length, extent);
  if (e.has(1)) length = std::max(e.integer(1), length);
  const auto n = static_cast<double>(length);
  return std::has_single_bit(static_cast<std::uint64_t>(length)) ? n : std::max(n, n * n / 16);
}

void stft(Evaluation& e) {
  const HostTensor signal = to_float64(e.operand(0), e.memory());
  HostTensor& result = e.result();
  const auto parts = signal.rank() == 2 ? std::size_t{1} : static_cast<std::size_t>(signal.extent(2)),
             samples = static_cast<std::size_t>(signal.extent(1));
  const auto step = static_cast<std::size_t>(e.integer(1));
  const std::vector<double> window = e.has(2) ? e.numbers(2) : std::vector<double>{};  // none: of ones
  const std::size_t length = e.has(3) ? static_cast<std::size_t>(e.integer(3)) : e.has(2) ? window.size() : samples;
  if (e.has(2) && window.size() != length) e.fail("the window has {} elements, a frame {}", window.size(), length);
  const auto batch = static_cast<std::size_t>(result.extent(0)), frames = static_cast<std::size_t>(result.extent(1)),
             bins = static_cast<std::size_t>(result.extent(2));
  HostTensor wide(DType::kFloat64, result.extents(), e.memory());
  double* out = wide.as_mutable<double>().data();
  Fourier fourier(length, false, e.memory());
  List<Complex> line(length, e.memory().resource());
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t frame = 0; frame < frames; ++frame) {
      const double* const in = signal.as<double>().data() + (b * samples + frame * step) * parts;
      for (std::size_t k = 0; k < length; ++k) {
        const double weight = window.empty() ? 1 : window[k];
        line[k] = {in[k * parts] * weight, parts == 2 ? in[k * parts + 1] * weight : 0};
      }
      e.asks_amplitude() ? set_magnitude(line) : fourier.transform(line);
      for (std::size_t k = 0; k < bins; ++k, out += 2) {
        out[0] = line[k].real();
        out[1] = line[k].imag();
      }
    }
  store(result, 0, result.size(), wide.as<double>().data());
}

/// Integers are truncated.
void store_numbers(HostTensor& result, std::span<const double> numbers) {
  if (is_float(result.dtype())) return store(result, 0, numbers.size(), numbers.data());
  store_integers(result, 0, numbers.size(),
                 [&](std::size_t i) { return std::isnan(numbers[i]) ? 0 : truncated(numbers[i]); });
}

/// Triangles over the frequencies of a spectrum, evenly spaced in mels.
void mel_weight_matrix(Evaluation& e) {
  const std::int64_t filters = e.integer(0), length = e.integer(1), rate = e.integer(2);
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = to_mel(e.number(3)), step = (to_mel(e.number(4)) - low) / (static_cast<double>(filters) + 2);
  HostTensor& result = e.result();
  List<double> matrix(result.size(), 0, e.memory().resource());
  const auto bin = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    return truncated(std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate)));
  };
  for (std::int64_t i = 0; i < filters; ++i) {
    const std::int64_t left = bin(i), center = bin(i + 1), right = bin(i + 2);
    if (left < 0 || center < left || right < center || std::max(center, right - 1) >= result.extent(0))
      e.fail("the edges reach bins {}, {} and {} of {}", left, center, right, result.extent(0));
    const auto at = [&](std::int64_t row) -> double& { return matrix[static_cast<std::size_t>(row * filters + i)]; };
    if (left == center) at(center) = 1;
    for (std::int64_t j = left; left < center && j <= center; ++j)
      at(j) = static_cast<double>(j - left) / static_cast<double>(center - left);
    for (std::int64_t j = center; j < right; ++j)
      at(j) = static_cast<double>(right - j) / static_cast<double>(right - center);
  }
  store_numbers(result, matrix);
}

/// a + b cos(x) + c cos(2x) over one period; the last point is left out where the window is periodic.
void cosine_window(Evaluation& e, double a, double b, double c) {
  HostTensor& result = e.result();
  const auto size = static_cast<double>(result.size());
  const double period = e.in().int_attribute("periodic", 1) != 0 ? size : size - 1;
  List<double> window(e.memory().resource());
  window.reserve(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double x = 2 * std::numbers::pi * static_cast<double>(i) / period;
    window.push_back(a + b * std::cos(x) + c * std::cos(2 * x));
  }
  store_numbers(result, window);
}

void hann_window(Evaluation& e) { cosine_window(e, 0.5, -0.5, 0); }
void hamming_window(Evaluation& e) { cosine_window(e, 25.0 / 46, -21.0 / 46, 0); }
void blackman_window(Evaluation& e) { cosine_window(e, 0.42, -0.5, 0.08); }

const RegisterEvaluators kSignals{
    Evaluator("DFT").evaluate(dft).error(Rounding::composite(terms_of_dft).with_amplitude()),
    Evaluator("STFT").evaluate(stft).error(Rounding::composite().with_amplitude()),
    Evaluator("MelWeightMatrix").evaluate(mel_weight_matrix).error(Rounding::composite()),
    Evaluator("HannWindow").evaluate(hann_window).error(Rounding::of("cos")),
    Evaluator("HammingWindow").evaluate(hamming_window).error(Rounding::of("cos")),
    Evaluator("BlackmanWindow").evaluate(blackman_window).error(Rounding::of("cos")),
};

}  // namespace
}  // namespace tensorlint::runtime
