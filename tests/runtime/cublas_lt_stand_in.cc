// A library with the functions of cublasLt that tensorlint calls, in plain loops over host memory. What the real one
// documents of its arguments it checks: descriptors that exist, shapes that fit each other, leading dimensions, steps
// of stacks, types, alignment, the workspace. It shares no declaration with what it tests. Source: CUDA Toolkit 13.0,
// cuBLAS documentation, "Using the cuBLASLt API".
#include "tests/runtime/cublas_lt_stand_in.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/common/scalar.h"

namespace {

constexpr int kInvalid = 7, kFailed = 13, kNotSupported = 15;
constexpr std::uint64_t kAlgorithm = 0x74656e736f726c74;
constexpr std::size_t kWorkspace = 48 << 10;

struct Object {
  enum class Kind { kProduct, kMatrix, kPreference } kind;
  int compute = 0, type = 0;  ///< type: of a matrix, or of a product's factors
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::map<int, std::vector<unsigned char>> attributes = {};

  template <typename T>
  T get(int attribute, T otherwise) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end() || found->second.size() != sizeof(T)) return otherwise;
    T value;
    std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }
};

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

std::set<Object*> objects;
std::set<void*> handles;
StandInCounts counts{};
std::string complaint, told;
std::uint64_t failing = 0;
bool finds_none = false;

/// Counts a call; not 0 where it is made to fail.
int begin() { return ++counts.calls == failing ? kFailed : 0; }

int refuse(std::string why) {
  if (complaint.empty()) complaint = std::move(why);
  return kInvalid;
}

Object* object(void* address, Object::Kind kind) {
  auto* const found = static_cast<Object*>(address);
  return objects.contains(found) && found->kind == kind ? found : nullptr;
}

int create(void** made, Object object) {
  if (const int failed = begin(); failed != 0) return failed;
  ++counts.live;
  *made = *objects.insert(new Object(std::move(object))).first;
  return 0;
}

int destroy(void* address, Object::Kind kind) {
  Object* const found = object(address, kind);
  if (found == nullptr) return refuse("destroyed: not such a descriptor");
  --counts.live;
  objects.erase(found);
  delete found;
  return begin();
}

int set(void* address, Object::Kind kind, int attribute, const void* value, std::size_t bytes) {
  if (const int failed = begin(); failed != 0) return failed;
  Object* const found = object(address, kind);
  if (found == nullptr) return refuse("attribute: not such a descriptor");
  const auto* const first = static_cast<const unsigned char*>(value);
  found->attributes[attribute] = {first, first + bytes};
  return 0;
}

double read(const void* data, int type, std::int64_t at) {
  using namespace tensorlint::kernels;
  switch (type) {
    case 1:
      return static_cast<const double*>(data)[at];
    case 0:
      return static_cast<double>(static_cast<const float*>(data)[at]);
    case 2:
      return static_cast<double>(to_float(static_cast<const Half*>(data)[at]));
    default:
      return static_cast<double>(to_float(static_cast<const BFloat16*>(data)[at]));
  }
}

void write(void* data, int type, std::int64_t at, double value) {
  using namespace tensorlint::kernels;
  if (type == 1) static_cast<double*>(data)[at] = value;
  if (type == 0) static_cast<float*>(data)[at] = static_cast<float>(value);
  if (type == 2) static_cast<Half*>(data)[at] = to_half(static_cast<float>(value));
  if (type == 14) static_cast<BFloat16*>(data)[at] = to_bfloat16(static_cast<float>(value));
}

/// To 10 bits of fraction, to nearest.
double in_tf32(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>((bits + 0x0fff + ((bits >> 13) & 1)) & ~std::uint32_t{0x1fff}));
}

struct Product {
  const Object *product, *a, *b, *c, *d;
  bool turns_a, turns_b;
  std::int64_t m, n, k, stack;

  std::int64_t step(const Object* matrix) const { return stack == 1 ? 0 : matrix->get<std::int64_t>(6, 0); }
};

/// False, and why, where the descriptors do not fit each other.
bool read_product(void* product, void* a, void* b, void* c, void* d, Product& read) {
  using Kind = Object::Kind;
  read.product = object(product, Kind::kProduct);
  read.a = object(a, Kind::kMatrix);
  read.b = object(b, Kind::kMatrix);
  read.c = object(c, Kind::kMatrix);
  read.d = object(d, Kind::kMatrix);
  const auto wrong = [](std::string why) { return refuse(std::move(why)), false; };
  if (read.product == nullptr || read.a == nullptr || read.b == nullptr || read.c == nullptr || read.d == nullptr)
    return wrong("not such a descriptor");
  const int type = read.d->type;
  const bool is_double = type == 1;
  const int compute = read.product->compute;
  if (is_double ? compute != 70 || read.product->type != 1
                : (compute != 68 && compute != 77) || read.product->type != 0)
    return wrong("compute type and type of factors do not fit the matrices");
  if (compute == 77 && type != 0) return wrong("tf32 is of float32");
  read.stack = read.d->get<std::int32_t>(5, 1);
  for (const Object* const matrix : {read.a, read.b, read.c, read.d}) {
    if (matrix->type != type) return wrong("types differ");
    if (matrix->rows == 0 || matrix->columns == 0) return wrong("a matrix is empty");
    if (matrix->leading < static_cast<std::int64_t>(matrix->rows)) return wrong("columns overlap");
    if (matrix->get<std::int32_t>(5, 1) != read.stack) return wrong("stacks differ");
  }
  read.turns_a = read.product->get<std::int32_t>(3, 0) == 1;
  read.turns_b = read.product->get<std::int32_t>(4, 0) == 1;
  read.m = static_cast<std::int64_t>(read.d->rows);
  read.n = static_cast<std::int64_t>(read.d->columns);
  read.k = static_cast<std::int64_t>(read.turns_a ? read.a->rows : read.a->columns);
  const auto is = [](const Object* matrix, bool turns, std::int64_t rows, std::int64_t columns) {
    if (turns) std::swap(rows, columns);
    return static_cast<std::int64_t>(matrix->rows) == rows && static_cast<std::int64_t>(matrix->columns) == columns;
  };
  if (!is(read.a, read.turns_a, read.m, read.k) || !is(read.b, read.turns_b, read.k, read.n) ||
      !is(read.c, false, read.m, read.n))
    return wrong("the matrices do not fit each other");
  if (read.stack > 1 && std::abs(read.step(read.d)) < read.d->leading * (read.n - 1) + read.m)
    return wrong("results overlap");
  const auto epilogue = read.product->get<std::uint32_t>(7, 1);
  if (epilogue != 1 && epilogue != 4) return wrong("epilogue");
  if (epilogue == 4 && is_double) return wrong("a bias of float64");
  if (epilogue == 4 && read.product->get<const void*>(8, nullptr) == nullptr) return wrong("there is no bias");
  return true;
}

bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

}  // namespace

extern "C" {

void tensorlint_computes_on_the_host() {}

StandInCounts stand_in_counts() { return counts; }
const char* stand_in_complaint() {
  told = complaint;
  complaint.clear();
  return told.c_str();
}
void stand_in_fail_at(std::uint64_t call) { failing = call == 0 ? 0 : counts.calls + call; }
void stand_in_find_no_algorithm(int none) { finds_none = none != 0; }

int cublasLtCreate(void** handle) {
  if (const int failed = begin(); failed != 0) return failed;
  ++counts.live;
  *handle = *handles.insert(new char).first;
  return 0;
}
int cublasLtDestroy(void* handle) {
  if (handles.erase(handle) == 0) return refuse("destroyed: not a handle");
  --counts.live;
  delete static_cast<char*>(handle);
  return begin();
}
const char* cublasLtGetStatusName(int status) {
  return status == kFailed         ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                   : "CUBLAS_STATUS_INVALID_VALUE";
}
int cublasLtMatmulDescCreate(void** product, int compute, int type) {
  return create(product, {.kind = Object::Kind::kProduct, .compute = compute, .type = type});
}
int cublasLtMatmulDescDestroy(void* product) { return destroy(product, Object::Kind::kProduct); }
int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, std::size_t bytes) {
  return set(product, Object::Kind::kProduct, attribute, value, bytes);
}
int cublasLtMatrixLayoutCreate(void** matrix, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  return create(matrix,
                {.kind = Object::Kind::kMatrix, .type = type, .rows = rows, .columns = columns, .leading = leading});
}
int cublasLtMatrixLayoutDestroy(void* matrix) { return destroy(matrix, Object::Kind::kMatrix); }
int cublasLtMatrixLayoutSetAttribute(void* matrix, int attribute, const void* value, std::size_t bytes) {
  return set(matrix, Object::Kind::kMatrix, attribute, value, bytes);
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  return create(preference, {.kind = Object::Kind::kPreference});
}
int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy(preference, Object::Kind::kPreference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, std::size_t bytes) {
  return set(preference, Object::Kind::kPreference, attribute, value, bytes);
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference,
                                   int requested, Heuristic* results, int* returned) {
  if (const int failed = begin(); failed != 0) return failed;
  ++counts.heuristics;
  Product read{};
  if (!handles.contains(handle) || requested < 1) return refuse("heuristic: handle or count");
  if (!read_product(product, a, b, c, d, read)) return kInvalid;
  const Object* const preferred = object(preference, Object::Kind::kPreference);
  if (preferred == nullptr || preferred->get<std::uint64_t>(1, 0) != std::uint64_t{32} << 20 ||
      preferred->get<std::uint32_t>(3, 7) != 2)
    return refuse("heuristic: preference");
  for (int operand = 0; operand < 4; ++operand)
    if (preferred->get<std::uint32_t>(5 + operand, 256) != 16) return refuse("heuristic: alignment");
  *returned = finds_none ? 0 : 1;
  *results = {
      {{kAlgorithm, static_cast<std::uint64_t>(read.m), static_cast<std::uint64_t>(read.n)}}, kWorkspace, 0, 1, {}};
  return finds_none ? kNotSupported : 0;
}

int cublasLtMatmul(void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes, void*) {
  if (const int failed = begin(); failed != 0) return failed;
  Product p{};
  if (!handles.contains(handle)) return refuse("product: not a handle");
  if (!read_product(product, a_layout, b_layout, c_layout, d_layout, p)) return kInvalid;
  if (algorithm->data[0] != kAlgorithm || algorithm->data[1] != static_cast<std::uint64_t>(p.m) ||
      algorithm->data[2] != static_cast<std::uint64_t>(p.n))
    return refuse("product: the algorithm is of another shape");
  if (workspace == nullptr || workspace_bytes < kWorkspace) return refuse("product: workspace");
  const bool has_bias = p.product->get<std::uint32_t>(7, 1) == 4;
  const auto* const bias = p.product->get<const void*>(8, nullptr);
  for (const void* const address : {a, b, c, static_cast<const void*>(d), static_cast<const void*>(workspace), bias})
    if (!is_aligned(address)) return refuse("product: alignment");
  std::memset(workspace, 0x5a, workspace_bytes);
  const int type = p.d->type;
  const bool rounds = p.product->compute == 77;
  const double scale = read(alpha, p.product->type, 0), added = read(beta, p.product->type, 0);
  for (std::int64_t matrix = 0; matrix < p.stack; ++matrix)
    for (std::int64_t column = 0; column < p.n; ++column)
      for (std::int64_t row = 0; row < p.m; ++row) {
        double sum = 0;
        for (std::int64_t i = 0; i < p.k; ++i) {
          const std::int64_t a_at = p.turns_a ? row * p.a->leading + i : i * p.a->leading + row;
          const std::int64_t b_at = p.turns_b ? i * p.b->leading + column : column * p.b->leading + i;
          const double left = read(a, type, matrix * p.step(p.a) + a_at);
          const double right = read(b, type, matrix * p.step(p.b) + b_at);
          sum += rounds ? in_tf32(left) * in_tf32(right) : left * right;
        }
        sum *= scale;
        if (added != 0) sum += added * read(c, type, matrix * p.step(p.c) + column * p.c->leading + row);
        if (has_bias) sum += read(bias, type, row);
        write(d, type, matrix * p.step(p.d) + column * p.d->leading + row, sum);
      }
  ++counts.products;
  counts.tf32 += rounds ? 1 : 0;
  return 0;
}

}  // extern "C"
