#pragma once

// cublasLt, loaded where a program asks for it and linked nowhere. Declared by hand with what is used of it.
// Source: CUDA Toolkit 13.0, cuBLAS documentation, "Using the cuBLASLt API"; the values of enumerations are the same
// from CUDA 11.4 on.

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/product/column_product.h"

namespace tensorlint::plugins {

/// The library's functions and types, under its own names.
struct CublasLtFunctions {
  using Status = int;  // 0: success
  using Handle = void*;
  using Descriptor = void*;  // of a product, a matrix, a preference

  struct Algorithm {
    std::uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    std::size_t workspace_bytes;
    Status state;
    float waves;
    int reserved[4];
  };

  Status (*cublasLtCreate)(Handle* handle);
  Status (*cublasLtDestroy)(Handle handle);
  const char* (*cublasLtGetStatusName)(Status status);
  Status (*cublasLtMatmulDescCreate)(Descriptor* product, int compute_type, int scale_type);
  Status (*cublasLtMatmulDescDestroy)(Descriptor product);
  Status (*cublasLtMatmulDescSetAttribute)(Descriptor product, int attribute, const void* value, std::size_t bytes);
  Status (*cublasLtMatrixLayoutCreate)(Descriptor* matrix, int type, std::uint64_t rows, std::uint64_t columns,
                                       std::int64_t leading);
  Status (*cublasLtMatrixLayoutDestroy)(Descriptor matrix);
  Status (*cublasLtMatrixLayoutSetAttribute)(Descriptor matrix, int attribute, const void* value, std::size_t bytes);
  Status (*cublasLtMatmulPreferenceCreate)(Descriptor* preference);
  Status (*cublasLtMatmulPreferenceDestroy)(Descriptor preference);
  Status (*cublasLtMatmulPreferenceSetAttribute)(Descriptor preference, int attribute, const void* value,
                                                 std::size_t bytes);
  Status (*cublasLtMatmulAlgoGetHeuristic)(Handle handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c,
                                           Descriptor d, Descriptor preference, int requested, Heuristic* results,
                                           int* returned);
  Status (*cublasLtMatmul)(Handle handle, Descriptor product, const void* alpha, const void* a, Descriptor a_layout,
                           const void* b, Descriptor b_layout, const void* beta, const void* c, Descriptor c_layout,
                           void* d, Descriptor d_layout, const Algorithm* algorithm, void* workspace,
                           std::size_t workspace_bytes, void* stream);
};

// cudaDataType_t, cublasComputeType_t and attributes.
enum CublasLtValue : int {
  kCudaR32F = 0,
  kCudaR64F = 1,
  kCudaR16F = 2,
  kCudaR16BF = 14,
  kCompute32F = 68,
  kCompute64F = 70,
  kCompute32FFastTf32 = 77,
  kProductTransposeA = 3,
  kProductTransposeB = 4,
  kProductEpilogue = 7,
  kProductBias = 8,
  kLayoutStack = 5,
  kLayoutStep = 6,
  kPreferenceWorkspace = 1,
  kPreferenceReductions = 3,
  kPreferenceAlignmentA = 5,  // and B, C, D after it
  kEpilogueBias = 4,
  kReduceInComputeType = 2,
};

/// Of one device, whose calls it makes. Not thread-safe.
class CublasLt {
 public:
  static constexpr std::uint64_t kWorkspaceBytes = 32 << 20;  // what the documentation advises for Hopper
  static constexpr std::uint32_t kAlignment = 16;             // of values in a block
  static constexpr std::size_t kMostKept = 512;               // shapes

  /// `file`: of the library; empty: the one that the system finds. `marker`: a function that it has to have, null:
  /// none. The device is the current one. Null, and why: no library, not all functions, a library that finds no device.
  static std::unique_ptr<CublasLt> load(const std::string& file, bool uses_tf32, const char* marker,
                                        std::string& error) {
    void* library = nullptr;
    std::string why;
    if (!file.empty()) {
      library = open(file.c_str(), why);
    } else {
      for (const char* const name : {"libcublasLt.so.13", "libcublasLt.so.12"})
        if (library == nullptr) library = open(name, why);
    }
    if (library == nullptr) {
      error = "cublasLt cannot be loaded: " + why;
      return nullptr;
    }
    if (marker != nullptr && ::dlsym(library, marker) == nullptr) {
      error = "cublasLt needs a GPU; this device is emulated";
      return nullptr;
    }
    // Never closed: it has threads, and state of the driver, that may outlive a device.
    std::unique_ptr<CublasLt> made(new CublasLt(uses_tf32));
    if (const char* const missing = made->find_functions(library); missing != nullptr) {
      error = std::string("the library is not a cublasLt of CUDA 12 or 13: it lacks ") + missing;
      return nullptr;
    }
    if (const int status = made->call_.cublasLtCreate(&made->handle_); status != 0) {
      made->handle_ = nullptr;
      error = made->text_of("cublasLtCreate", status);
      return nullptr;
    }
    return made;
  }
  ~CublasLt() {
    kept_.clear();
    if (handle_ != nullptr) (void)call_.cublasLtDestroy(handle_);
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Puts the product into the stream. `workspace(bytes)` gives memory for it, null where there is none. Empty, or what
  /// failed.
  template <typename Workspace>
  std::string multiply(const kernels::MatrixProduct& request, const Workspace& workspace, void* stream) {
    const bool has_addend = request.addend.data != nullptr;
    kernels::ColumnProduct product;
    if (const char* const why = kernels::column_product(request, has_addend, &product); why != nullptr)
      return std::string("cublasLt does not take the product, because ") + why;
    std::string error;
    CachedPlan* const kept = keep(request.dtype, product, request.addend.data, error);
    if (kept == nullptr) return error;
    void* const memory = kept->workspace_bytes == 0 ? nullptr : workspace(kept->workspace_bytes);
    if (kept->workspace_bytes != 0 && memory == nullptr) return "cublasLt: there is no memory for its workspace";
    const bool is_matrix = product.kind == kernels::ColumnAddend::kMatrix;
    const Factors factors = factors_of(request, is_matrix);
    const void* const addend = is_matrix ? request.addend.data : request.result;
    return text_of("cublasLtMatmul", call_.cublasLtMatmul(handle_, kept->product, factors.alpha(), request.b.data,
                                                          kept->first, request.a.data, kept->second, factors.beta(),
                                                          addend, kept->addend, request.result, kept->result,
                                                          &kept->algorithm, memory, kept->workspace_bytes, stream));
  }

 private:
  /// Alpha and beta in the type in which they are read.
  struct Factors {
    double doubles[2];
    float floats[2];
    bool is_double;
    const void* alpha() const { return is_double ? static_cast<const void*>(&doubles[0]) : &floats[0]; }
    const void* beta() const { return is_double ? static_cast<const void*>(&doubles[1]) : &floats[1]; }
  };

  /// A descriptor that ends with its owner.
  class Owned {
   public:
    using Destroy = CublasLtFunctions::Status (*)(CublasLtFunctions::Descriptor);

    Owned() = default;
    Owned(Owned&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)), destroy_(other.destroy_) {}
    Owned& operator=(Owned&& other) noexcept {
      std::swap(descriptor_, other.descriptor_);
      std::swap(destroy_, other.destroy_);
      return *this;
    }
    ~Owned() {
      if (descriptor_ != nullptr) (void)destroy_(descriptor_);
    }
    CublasLtFunctions::Descriptor* made_by(Destroy destroy) {
      destroy_ = destroy;
      return &descriptor_;
    }
    operator CublasLtFunctions::Descriptor() const { return descriptor_; }

   private:
    CublasLtFunctions::Descriptor descriptor_ = nullptr;
    Destroy destroy_ = nullptr;
  };

  /// A shape with the algorithm that was chosen for it.
  struct CachedPlan {
    Owned product, first, second, addend, result;
    CublasLtFunctions::Algorithm algorithm{};
    std::size_t workspace_bytes = 0;
  };
  using Key = std::array<std::int64_t, 20>;

  explicit CublasLt(bool uses_tf32) : uses_tf32_(uses_tf32) {}

  static void* open(const char* name, std::string& why) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr && why.empty()) why = ::dlerror();
    return library;
  }

  /// The name of one that the library lacks, or null.
  const char* find_functions(void* library) {
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr && missing == nullptr) missing = name;
    };
#define TENSORLINT_FIND(name) find(call_.name, #name)
    TENSORLINT_FIND(cublasLtCreate);
    TENSORLINT_FIND(cublasLtDestroy);
    TENSORLINT_FIND(cublasLtGetStatusName);
    TENSORLINT_FIND(cublasLtMatmulDescCreate);
    TENSORLINT_FIND(cublasLtMatmulDescDestroy);
    TENSORLINT_FIND(cublasLtMatmulDescSetAttribute);
    TENSORLINT_FIND(cublasLtMatrixLayoutCreate);
    TENSORLINT_FIND(cublasLtMatrixLayoutDestroy);
    TENSORLINT_FIND(cublasLtMatrixLayoutSetAttribute);
    TENSORLINT_FIND(cublasLtMatmulPreferenceCreate);
    TENSORLINT_FIND(cublasLtMatmulPreferenceDestroy);
    TENSORLINT_FIND(cublasLtMatmulPreferenceSetAttribute);
    TENSORLINT_FIND(cublasLtMatmulAlgoGetHeuristic);
    TENSORLINT_FIND(cublasLtMatmul);
#undef TENSORLINT_FIND
    return missing;
  }

  std::string text_of(const char* function, CublasLtFunctions::Status status) const {
    return status == 0 ? std::string()
                       : std::string(function) + ": " + call_.cublasLtGetStatusName(status) + " (status " +
                             std::to_string(status) + ")";
  }

  static Factors factors_of(const kernels::MatrixProduct& request, bool has_matrix) {
    const double beta = has_matrix ? request.beta : 0;
    return {{request.alpha, beta},
            {static_cast<float>(request.alpha), static_cast<float>(beta)},
            request.dtype == kernels::Dtype::kFloat64};
  }

  static int type_of(kernels::Dtype dtype) {
    switch (dtype) {
      case kernels::Dtype::kFloat64:
        return kCudaR64F;
      case kernels::Dtype::kFloat16:
        return kCudaR16F;
      case kernels::Dtype::kBFloat16:
        return kCudaR16BF;
      default:
        return kCudaR32F;
    }
  }

  /// Null, with an error, where the library refuses the shape.
  CachedPlan* keep(kernels::Dtype dtype, const kernels::ColumnProduct& product, const void* bias, std::string& error) {
    const auto found = kept_.find(key_of(dtype, product));
    CachedPlan* kept = found == kept_.end() ? nullptr : &found->second;
    if (kept == nullptr) {
      CachedPlan made;
      error = make(dtype, product, bias, made);
      if (!error.empty()) return nullptr;
      if (kept_.size() == kMostKept) kept_.clear();  // descriptors of work under way are not read any more
      kept = &kept_.emplace(key_of(dtype, product), std::move(made)).first->second;
    } else if (product.kind == kernels::ColumnAddend::kBias) {
      error = text_of("cublasLtMatmulDescSetAttribute",
                      call_.cublasLtMatmulDescSetAttribute(kept->product, kProductBias, &bias, sizeof bias));
    }
    return error.empty() ? kept : nullptr;
  }

  static Key key_of(kernels::Dtype dtype, const kernels::ColumnProduct& product) {
    Key key{static_cast<std::int64_t>(dtype), product.stack, static_cast<std::int64_t>(product.kind)};
    std::size_t at = 3;
    for (const kernels::ColumnMatrix* const matrix : {&product.first, &product.second, &product.addend}) {
      key[at++] = matrix->is_transposed ? 1 : 0;
      key[at++] = matrix->rows;
      key[at++] = matrix->columns;
      key[at++] = matrix->leading;
      key[at++] = matrix->step;
    }
    return key;
  }

  std::string make(kernels::Dtype dtype, const kernels::ColumnProduct& product, const void* bias, CachedPlan& made) {
    const bool is_double = dtype == kernels::Dtype::kFloat64;
    const bool has_bias = product.kind == kernels::ColumnAddend::kBias;
    const int compute = is_double                                         ? kCompute64F
                        : uses_tf32_ && dtype == kernels::Dtype::kFloat32 ? kCompute32FFastTf32
                                                                          : kCompute32F;
    std::string failed;
    const auto check = [&](const char* function, CublasLtFunctions::Status status) {
      if (failed.empty()) failed = text_of(function, status);
      return failed.empty();
    };
    const auto set = [&](CublasLtFunctions::Descriptor of, int attribute, const auto& value) {
      if (failed.empty())
        check("cublasLtMatmulDescSetAttribute",
              call_.cublasLtMatmulDescSetAttribute(of, attribute, &value, sizeof value));
    };
    if (!check("cublasLtMatmulDescCreate",
               call_.cublasLtMatmulDescCreate(made.product.made_by(call_.cublasLtMatmulDescDestroy), compute,
                                              is_double ? kCudaR64F : kCudaR32F)))
      return failed;
    set(made.product, kProductTransposeA, std::int32_t{product.first.is_transposed});
    set(made.product, kProductTransposeB, std::int32_t{product.second.is_transposed});
    if (has_bias) {
      set(made.product, kProductEpilogue, std::uint32_t{kEpilogueBias});
      set(made.product, kProductBias, bias);  // the choice of an algorithm looks at its alignment
    }
    const bool has_matrix = product.kind == kernels::ColumnAddend::kMatrix;
    const std::pair<Owned*, const kernels::ColumnMatrix*> layouts[] = {
        {&made.first, &product.first},
        {&made.second, &product.second},
        {&made.addend, has_matrix ? &product.addend : &product.result},
        {&made.result, &product.result}};
    for (const auto& [owned, matrix] : layouts)
      if (failed.empty()) failed = lay_out(type_of(dtype), *matrix, product.stack, *owned);
    return failed.empty() ? choose(made) : failed;
  }

  std::string lay_out(int type, const kernels::ColumnMatrix& matrix, std::int64_t stack, Owned& owned) {
    std::string failed =
        text_of("cublasLtMatrixLayoutCreate",
                call_.cublasLtMatrixLayoutCreate(owned.made_by(call_.cublasLtMatrixLayoutDestroy), type,
                                                 static_cast<std::uint64_t>(matrix.rows),
                                                 static_cast<std::uint64_t>(matrix.columns), matrix.leading));
    if (!failed.empty() || stack == 1) return failed;
    const auto count = static_cast<std::int32_t>(stack);
    failed = text_of("cublasLtMatrixLayoutSetAttribute",
                     call_.cublasLtMatrixLayoutSetAttribute(owned, kLayoutStack, &count, sizeof count));
    if (!failed.empty()) return failed;
    return text_of("cublasLtMatrixLayoutSetAttribute",
                   call_.cublasLtMatrixLayoutSetAttribute(owned, kLayoutStep, &matrix.step, sizeof matrix.step));
  }

  /// Sums that are split over blocks are brought together in the compute type and in a fixed order: in the type of the
  /// result they would be rounded between, and in place whichever block is first would be.
  std::string choose(CachedPlan& made) {
    Owned preference;
    std::string failed =
        text_of("cublasLtMatmulPreferenceCreate",
                call_.cublasLtMatmulPreferenceCreate(preference.made_by(call_.cublasLtMatmulPreferenceDestroy)));
    const auto set = [&](int attribute, const auto& value) {
      if (failed.empty())
        failed = text_of("cublasLtMatmulPreferenceSetAttribute",
                         call_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
    };
    set(kPreferenceWorkspace, kWorkspaceBytes);
    set(kPreferenceReductions, std::uint32_t{kReduceInComputeType});
    for (int operand = 0; operand < 4; ++operand) set(kPreferenceAlignmentA + operand, kAlignment);
    CublasLtFunctions::Heuristic found{};
    int count = 0;
    if (failed.empty())
      failed = text_of("cublasLtMatmulAlgoGetHeuristic",
                       call_.cublasLtMatmulAlgoGetHeuristic(handle_, made.product, made.first, made.second, made.addend,
                                                            made.result, preference, 1, &found, &count));
    if (failed.empty() && count < 1) failed = "cublasLtMatmulAlgoGetHeuristic: there is no algorithm for the product";
    if (failed.empty()) failed = text_of("cublasLtMatmulAlgoGetHeuristic", found.state);
    made.algorithm = found.algorithm;
    made.workspace_bytes = found.workspace_bytes;
    return failed;
  }

  const bool uses_tf32_;
  CublasLtFunctions call_{};
  CublasLtFunctions::Handle handle_ = nullptr;
  std::map<Key, CachedPlan> kept_;
};

}  // namespace tensorlint::plugins
