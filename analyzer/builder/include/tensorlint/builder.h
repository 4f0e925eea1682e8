#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tensorlint/dtype.h"

/// Tensor programs written in C++: each call adds nodes of ONNX, knows at once what comes out of them, and is checked
/// by tensorlint's rules. Not thread-safe.
///
/// A mistake in the program (shapes, dtypes, devices, values) is a Finding and never an exception. Misuse of the
/// library (an absent operand, a value of another builder or of a complete body, a name given twice, data that do not
/// fit their dims) always throws Misuse with the caller's line; the graph stays usable.
namespace tensorlint::builder {

class Builder;
struct State;

/// A call that the library does not allow. what() is "FILE:LINE: message".
class Misuse : public std::invalid_argument {
 public:
  Misuse(const std::source_location& location, const std::string& message);

  const std::source_location& location() const { return location_; }  ///< of the caller
  const std::string& message() const { return message_; }             ///< without the location

 private:
  std::source_location location_;
  std::string message_;
};

/// The extent of an axis: a number, or a name that stands for one number in the whole graph.
class Extent {
 public:
  template <std::integral T>
  Extent(T number) : number_(static_cast<std::int64_t>(number)) {}       // NOLINT: `{"N", 8}` is a shape
  Extent(const char* name) : Extent(std::string(name)) {}                // NOLINT
  Extent(std::string name) : is_named_(true), name_(std::move(name)) {}  // NOLINT

  bool is_named() const { return is_named_; }
  const std::string& name() const { return name_; }  ///< empty for a number
  std::int64_t number() const { return number_; }

 private:
  bool is_named_ = false;
  std::string name_;
  std::int64_t number_ = 0;
};
using Shape = std::vector<Extent>;

/// The dims that reshape gives: numbers and names, `{"batch", -1, 8}`, or a vector of either.
class Dims {
 public:
  Dims(std::initializer_list<Extent> extents) : extents_(extents) {}
  Dims(Shape extents) : extents_(std::move(extents)) {}                                         // NOLINT
  Dims(const std::vector<std::int64_t>& numbers) : extents_(numbers.begin(), numbers.end()) {}  // NOLINT
  const Shape& extents() const { return extents_; }

 private:
  Shape extents_;
};

/// A number in arithmetic with a value; it becomes a constant of the value's dtype.
class Number {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Number(T number)  // NOLINT: `x + 1`
      : is_integer_(std::in_range<std::int64_t>(number)),
        integer_(is_integer_ ? static_cast<std::int64_t>(number) : 0),
        real_(static_cast<double>(number)) {}
  template <std::floating_point T>
  Number(T number) : real_(static_cast<double>(number)) {}  // NOLINT

  bool is_integer() const { return is_integer_; }
  std::int64_t integer() const { return integer_; }  ///< 0 where it is not an integer
  double real() const { return real_; }

 private:
  bool is_integer_ = false;
  std::int64_t integer_ = 0;
  double real_ = 0;
};

template <typename T>
inline constexpr DType kDTypeOf = DType::kUndefined;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<std::int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<std::int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDTypeOf<std::uint16_t> = DType::kUint16;
template <>
inline constexpr DType kDTypeOf<std::uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDTypeOf<std::uint64_t> = DType::kUint64;

template <typename T>
concept Element = kDTypeOf<T> != DType::kUndefined;

/// The elements of a constant, row-major.
class Data {
 public:
  template <Element T>
  explicit Data(T scalar) : Data(std::vector<T>{scalar}, {}) {}
  template <Element T>
  Data(std::initializer_list<T> elements, std::vector<std::int64_t> dims)
      : Data(std::vector<T>(elements), std::move(dims)) {}
  template <Element T>
  Data(const std::vector<T>& elements, std::vector<std::int64_t> dims) : dtype_(kDTypeOf<T>), dims_(std::move(dims)) {
    bytes_.reserve(elements.size() * sizeof(T));
    for (const T element : elements) {  // not a copy of the whole: std::vector<bool> has no bytes
      char raw[sizeof(T)];
      std::memcpy(raw, &element, sizeof(T));
      bytes_.append(raw, sizeof(T));
    }
  }
  /// Little-endian bytes of any dtype but string, elements below a byte packed as ONNX's raw_data has them.
  static Data raw(DType dtype, std::vector<std::int64_t> dims, std::string bytes);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  const std::string& bytes() const { return bytes_; }

 private:
  Data() = default;
  DType dtype_ = DType::kUndefined;
  std::vector<std::int64_t> dims_;
  std::string bytes_;
};

/// An attribute of a node. Lists of numbers that are not integers are given as std::vector.
class Attr {
 public:
  using Payload = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                               std::vector<std::string>, Data>;

  template <std::integral T>
  Attr(std::string name, T value) : name_(std::move(name)), payload_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Attr(std::string name, T value) : name_(std::move(name)), payload_(static_cast<float>(value)) {}
  Attr(std::string name, DType value) : name_(std::move(name)), payload_(static_cast<std::int64_t>(value)) {}
  Attr(std::string name, const char* value) : name_(std::move(name)), payload_(std::string(value)) {}
  Attr(std::string name, std::string value) : name_(std::move(name)), payload_(std::move(value)) {}
  Attr(std::string name, std::initializer_list<std::int64_t> value)
      : name_(std::move(name)), payload_(std::vector<std::int64_t>(value)) {}
  Attr(std::string name, std::vector<std::int64_t> value) : name_(std::move(name)), payload_(std::move(value)) {}
  Attr(std::string name, std::vector<float> value) : name_(std::move(name)), payload_(std::move(value)) {}
  Attr(std::string name, std::vector<std::string> value) : name_(std::move(name)), payload_(std::move(value)) {}
  Attr(std::string name, Data value) : name_(std::move(name)), payload_(std::move(value)) {}

  const std::string& name() const { return name_; }
  const Payload& payload() const { return payload_; }

 private:
  std::string name_;
  Payload payload_;
};

/// A value of a graph under construction: a handle, cheap to copy, valid as long as its builder. The questions are
/// answered at once. Inside the body of a Loop a carried value is what it is in the first iteration, until the Loop is
/// complete.
class Value {
 public:
  Value() = default;  ///< an optional operand that is left out
  explicit operator bool() const { return state_ != nullptr; }

  std::string name() const;
  std::optional<DType> dtype() const;  ///< where only one is possible
  std::optional<std::size_t> rank() const;
  /// "8", "N", "2*N + 1" for each axis, "?" for one that is not known; nullopt where the rank is not known.
  std::optional<std::vector<std::string>> shape() const;
  /// The number of an axis, negative ones from the end; nullopt where it is no constant.
  std::optional<std::int64_t> extent(std::int64_t axis) const;
  /// Where it may live, sorted; empty where that is not known. Costs a walk over the graph where a body decides it.
  std::vector<std::string> devices() const;
  std::string to_text() const;  ///< "float32[N, 8]"

 private:
  friend struct State;
  Value(State* state, std::uint32_t index) : state_(state), index_(index) {}
  State* state_ = nullptr;
  std::uint32_t index_ = 0;
};

/// A value with the line that it is used on, which operators have no argument for.
struct Located {
  Located(Value used, std::source_location location = std::source_location::current())  // NOLINT: converts
      : value(std::move(used)), at(location) {}
  Value value;
  std::source_location at;
};

/// Elementwise arithmetic with ONNX's broadcasting; a number becomes a constant of the value's dtype. Shapes: those of
/// add, sub, mul and div. Throws Misuse for an absent value, values of two builders, and a number that the value's
/// dtype cannot hold (`int64 + 0.5`) or does not fit (bool, unknown).
Value operator+(Located a, Value b);
Value operator-(Located a, Value b);
Value operator*(Located a, Value b);
Value operator/(Located a, Value b);
Value operator+(Located a, Number b);
Value operator-(Located a, Number b);
Value operator*(Located a, Number b);
Value operator/(Located a, Number b);
Value operator+(Number a, Located b);
Value operator-(Number a, Located b);
Value operator*(Number a, Located b);
Value operator/(Number a, Located b);
Value operator-(Located x);

/// How a node is called, beyond its operator and operands.
struct Call {
  std::vector<Attr> attributes{};
  std::string name{};    ///< of the node and its first result; made from the operator where empty
  std::string domain{};  ///< empty: ONNX's own
  std::size_t results = 1;
  std::string device{};  ///< where it has to run; empty: where its operands are
};

/// What the loss of a batch becomes.
enum class Reduction : std::uint8_t { kNone, kSum, kMean };

/// Options of the losses over classes.
struct ClassLoss {
  Reduction reduction = Reduction::kMean;
  std::int64_t ignore_index = -100;
  Value weight{};  ///< by class
};

/// Options of conv, an entry for each spatial axis; empty lists mean 1, and 0 for `pads`.
struct ConvOptions {
  std::vector<std::int64_t> strides{}, pads{},
      dilations{};  ///< pads: both sides alike, or all begins and then all ends
  std::int64_t group = 1;
};

/// Where it is from 1; an empty file means that no line is known.
struct Place {
  std::string file{};
  std::uint32_t line = 0, column = 0;
  std::string source{};  ///< the line of code, where its file can be read
};

struct Note {
  std::string message{};
  Place place{};
};

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

/// What a rule found, in its own words; `tensorlint explain RULE` says more.
struct Finding {
  std::string code{}, rule{};  ///< "TL-D101", "integer-target-in-regression-loss"
  Severity severity = Severity::kError;
  bool must = true;  ///< false: only some executions fail
  std::string message{};
  std::string node{}, op{}, value{};
  std::string module{};  ///< the scopes around the node, "encoder.layers.0"
  Place place{};
  std::vector<Note> notes{};
  std::vector<std::string> fixes{};

  /// Several lines, as a compiler prints them; "train.cc:41: error: ...".
  std::string to_text() const;
};

struct Options {
  std::string graph_name = "main";
  std::int64_t opset = 21;  ///< of ONNX's own operators, at least 7
  std::string default_device = "cpu";
  /// Called in the very call that made the mistake, for warnings and errors; may throw. The value then goes on as a
  /// best guess, so that later, independent mistakes are found too.
  std::function<void(const Finding&)> on_finding{};
};

/// Values of one iteration, as the body of a Loop sees them.
struct LoopStep {
  Value iteration{};  ///< int64 scalar, from 0
  Value condition{};  ///< bool scalar
  std::vector<Value> carried{};
};

/// What the body of a Loop hands on.
struct LoopResult {
  Value condition{};             ///< absent: goes on as long as trips are left
  std::vector<Value> carried{};  ///< into the next iteration, as many as went in
  std::vector<Value> stacked{};  ///< collected over all iterations along a new first axis
};

/// Names what is added while it lives after a module; see Builder::scope.
class Scope {
 public:
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend class Builder;
  Scope(State* state, std::string_view name, std::source_location at);
  State* state_;
  std::size_t depth_;
};

/// A graph under construction. Operands and results are values of ONNX; `at` is the caller's line, which findings and
/// exceptions name, and is never given.
///
/// Errors of every call: Misuse where a value that is not called optional is absent, belongs to another builder or to a
/// body that is complete. Shapes and dtypes that do not go together are findings.
class Builder {
 public:
  using Location = std::source_location;

  /// Misuse: an opset that is not known, a device without meaning.
  explicit Builder(Options options = {}, Location at = Location::current());
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// An input of the graph: `dtype[shape]`. Misuse: no name or one that is taken, a negative extent, an empty name of
  /// an extent, a call inside a body.
  Value input(std::string_view name, DType dtype, Shape shape, std::string_view device = "",
              Location at = Location::current());
  /// Something that training changes: an input of the graph, with its initial value as default where there is one, so
  /// that nothing is concluded from the initial elements. The file says `tensorlint.requires_grad` in its metadata.
  /// Inside a scope its name is "encoder.weight". Misuse: as of input, and data that do not fit their dims.
  Value parameter(std::string_view name, DType dtype, Shape shape, std::string_view device = "",
                  bool requires_grad = true, Location at = Location::current());
  Value parameter(std::string_view name, Data initial, std::string_view device = "", bool requires_grad = true,
                  Location at = Location::current());
  /// A constant of the graph, of the data's dims. An empty name becomes one of our own; inside a scope a name gets its
  /// prefix. Misuse: a name that is taken, data that do not fit their dims.
  Value constant(Data data, std::string_view name = "", std::string_view device = "",
                 Location at = Location::current());
  template <Element T>
  Value constant(T scalar, Location at = Location::current()) {
    return constant(Data(scalar), "", "", at);
  }

  /// A domain besides ONNX's own, in the version that its operators are meant. Known domains need no import. Misuse:
  /// ONNX's own domain, a version below 1, a second version of one domain.
  void import(std::string_view domain, std::int64_t version, Location at = Location::current());

  /// Until the Scope ends, nodes, their results, parameters and named constants are called "NAME.", after the scopes
  /// around it: `auto layer = graph.scope("layers.0");`. Findings name the module, the file has it as PyTorch's
  /// exporter writes it, and `tensorlint show --module` filters by it. Inputs and outputs keep their names. Scopes end
  /// in the reverse order of their beginnings and before the builder. Misuse: an empty name, one with a quote or a
  /// control character.
  [[nodiscard]] Scope scope(std::string_view name, Location at = Location::current());

  /// Any operator by its name; operands may be absent where it has optional ones. `ops` is for those with several
  /// results. Misuse: an empty name, no results or more than 1,024, attributes without a name or with one name, `op`
  /// with several results.
  Value op(std::string_view name, std::vector<Value> operands, Call call = {}, Location at = Location::current());
  std::vector<Value> ops(std::string_view name, std::vector<Value> operands, Call call,
                         Location at = Location::current());

  // What nearly every program needs; each is one node, but for constants that it takes.

  /// Elementwise with ONNX's broadcasting: [N, 1] and [8] give [N, 8]. Also as operators: `a + b`, `2 * a`.
  Value add(Value a, Value b, Location at = Location::current());
  Value sub(Value a, Value b, Location at = Location::current());
  Value mul(Value a, Value b, Location at = Location::current());
  Value div(Value a, Value b, Location at = Location::current());
  /// [..., n, k] and [..., k, m] to [..., n, m]; leading axes broadcast.
  Value matmul(Value a, Value b, Location at = Location::current());
  /// Elementwise; the shape stays.
  Value relu(Value x, Location at = Location::current());
  Value sigmoid(Value x, Location at = Location::current());
  /// The shape stays; sums (of exponentials) run over `axis`.
  Value softmax(Value x, std::int64_t axis = -1, Location at = Location::current());
  Value log_softmax(Value x, std::int64_t axis = -1, Location at = Location::current());
  Value cast(Value x, DType to, Location at = Location::current());
  /// The same elements as [dims...]. 0 keeps the axis, -1 is what is left. A name is the extent that some axis has in
  /// this graph: `reshape(x, {"batch", -1, 8})`; where the same axis of `x` does not have it, it is read at run time
  /// (Shape, Gather, Concat). Misuse: a name that no axis has.
  Value reshape(Value x, Dims dims, Location at = Location::current());
  /// Elements of `axis` by index: x [a, n, b], indices [i, j] along axis 1 give [a, i, j, b].
  Value gather(Value x, Value indices, std::int64_t axis = 0, Location at = Location::current());
  /// Values that differ at most in `axis`, one after the other along it. Misuse: no values.
  Value concat(std::vector<Value> values, std::int64_t axis, Location at = Location::current());
  /// x [N, C, spatial...] with weight [M, C / group, kernel...] and bias [M] or absent gives [N, M, spatial'...].
  Value conv(Value x, Value weight, Value bias = {}, ConvOptions options = {}, Location at = Location::current());
  /// (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on; scale, and bias or absent, have
  /// the shape of these axes. The shape of x stays. Before opset 17 written out. Misuse: a negative epsilon, before
  /// opset 17 an axis outside the rank.
  Value layer_norm(Value x, Value scale, Value bias = {}, std::int64_t axis = -1, double epsilon = 1e-5,
                   Location at = Location::current());
  /// Axis i of the result is axis perm[i] of x.
  Value transpose(Value x, std::vector<std::int64_t> perm, Location at = Location::current());
  /// x @ weight^T + bias, weight [out, in] (as torch.nn.Linear has it); bias may be absent.
  Value linear(Value x, Value weight, Value bias = {}, Location at = Location::current());

  /// Any of ONNX's reductions by name (ReduceMean, ReduceSum, ReduceMax, ...); no axes: over all of them.
  Value reduce(std::string_view name, Value x, std::vector<std::int64_t> axes = {}, bool keepdims = false,
               Location at = Location::current());
  Value reduce_mean(Value x, std::vector<std::int64_t> axes = {}, bool keepdims = false,
                    Location at = Location::current());
  Value reduce_sum(Value x, std::vector<std::int64_t> axes = {}, bool keepdims = false,
                   Location at = Location::current());
  Value reduce_max(Value x, std::vector<std::int64_t> axes = {}, bool keepdims = false,
                   Location at = Location::current());
  Value reduce_min(Value x, std::vector<std::int64_t> axes = {}, bool keepdims = false,
                   Location at = Location::current());
  /// Indices (int64) of the greatest elements along `axis`.
  Value arg_max(Value x, std::int64_t axis, bool keepdims = false, Location at = Location::current());

  /// The same tensor on another device. Misuse: text that names no device.
  Value transfer(Value x, std::string_view device, Location at = Location::current());

  /// Both branches take no operands and use outer values as they are; they give as many values each.
  /// Misuse: a branch without a function, different numbers of values, no values.
  std::vector<Value> if_(Value condition, const std::function<std::vector<Value>()>& then_branch,
                         const std::function<std::vector<Value>()>& else_branch, Location at = Location::current());
  /// At most `trips` iterations (absent: no limit) while `condition` holds (absent: it does). Results: the carried
  /// values after the last iteration, then what was stacked, each with a new first axis. Misuse: no function, another
  /// number of carried values than went in, no results.
  std::vector<Value> loop(Value trips, Value condition, std::vector<Value> carried,
                          const std::function<LoopResult(const LoopStep&)>& body, Location at = Location::current());

  // Losses as PyTorch defines them (torch.nn.functional), written out in operators of ONNX. `kMean` divides by all
  // elements, in losses over classes by the rows that count (with weights: by their sum).

  /// `input` and `target` of one shape and float dtype. The result is a scalar, with kNone of that shape.
  Value mse_loss(Value input, Value target, Reduction reduction = Reduction::kMean, Location at = Location::current());
  Value l1_loss(Value input, Value target, Reduction reduction = Reduction::kMean, Location at = Location::current());
  /// Misuse: a negative beta.
  Value smooth_l1_loss(Value input, Value target, Reduction reduction = Reduction::kMean, double beta = 1,
                       Location at = Location::current());
  /// Misuse: a delta that is not above 0.
  Value huber_loss(Value input, Value target, Reduction reduction = Reduction::kMean, double delta = 1,
                   Location at = Location::current());
  /// `input` are probabilities; logarithms are at least -100.
  Value bce_loss(Value input, Value target, Reduction reduction = Reduction::kMean, Location at = Location::current());
  Value bce_with_logits_loss(Value input, Value target, Reduction reduction = Reduction::kMean,
                             Location at = Location::current());
  /// Scores [N, C, ...] against class indices [N, ...], or against probabilities of the scores' own shape.
  Value cross_entropy_loss(Value input, Value target, ClassLoss options = {}, Location at = Location::current());
  /// Log-probabilities [N, C, ...] against class indices [N, ...].
  Value nll_loss(Value input, Value target, ClassLoss options = {}, Location at = Location::current());
  /// `input` are log-probabilities, and so is `target` with `log_target`.
  Value kl_div_loss(Value input, Value target, Reduction reduction = Reduction::kMean, bool log_target = false,
                    Location at = Location::current());

  /// Makes the value an output of the graph; a name renames it, or a copy of it where it is an input, constant or
  /// output already. Misuse: a name that is taken, a call inside a body.
  Value output(Value value, std::string_view name = "", Location at = Location::current());

  /// What was wrong in the calls so far: each mistake once, for the first of its places.
  const std::vector<Finding>& findings() const;
  /// All findings of all rules about the graph as it is. Costs a walk over the graph.
  std::vector<Finding> check() const;

  /// The binary ONNX file. Nodes carry the caller's lines as `pkg.torch.onnx.stack_trace`, so `tensorlint check` shows
  /// them. Throws std::length_error for a model above 2 GiB or bodies nested deeper than 64. Misuse: a call inside a
  /// body.
  std::string serialized(Location at = Location::current()) const;
  /// Writes a temporary file beside `path` and renames it. Throws std::system_error where that fails.
  void write(const std::string& path, Location at = Location::current()) const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tensorlint::builder
