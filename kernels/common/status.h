#pragma once

namespace tensorlint::kernels {

/// What a call returns: a code, and beside kLaunchFailed the CUDA runtime's own error. Nothing is launched unless the
/// code is kOk or kLaunchFailed.
class Status {
 public:
  enum Code : int {
    kOk,
    kBadShape,           // a negative extent, a product over 2^62, an axis outside the rank or given twice
    kTooManyAxisGroups,  // more alternations of kept and reduced axes than kMaxAxisGroups
    kUnsupportedDtype,   // no instance for this element type and operation
    kEmptyArgument,      // argmax or argmin over no elements
    kNullPointer,        // a pointer that this call needs
    kMisaligned,         // a pointer not aligned to its element
    kWorkspaceTooSmall,  // less than the workspace query's answer
    kBadParameter,       // a loss parameter outside its domain
    kLaunchFailed,       // the CUDA runtime refused: see device_error
    kOverlap,            // an output overlaps an operand in a way that the kernel cannot take
  };

  constexpr Status() = default;
  constexpr Status(Code code) : code_(code) {}
  /// The cudaError_t `device_error` of a call that refused. It has been taken: cudaGetLastError does not return it
  /// again.
  static constexpr Status launch_failed(int device_error) {
    Status status = kLaunchFailed;
    status.device_error_ = device_error;
    return status;
  }

  constexpr operator Code() const { return code_; }
  /// A cudaError_t as a number; 0 (cudaSuccess) beside every other code.
  constexpr int device_error() const { return device_error_; }

 private:
  Code code_ = kOk;
  int device_error_ = 0;
};

/// The code in words, lower case.
constexpr const char* describe(Status::Code code) {
  switch (code) {
    case Status::kOk:
      return "ok";
    case Status::kBadShape:
      return "bad shape or axes";
    case Status::kTooManyAxisGroups:
      return "too many alternations of kept and reduced axes";
    case Status::kUnsupportedDtype:
      return "no kernel for this dtype";
    case Status::kEmptyArgument:
      return "argmax or argmin over no elements";
    case Status::kNullPointer:
      return "a needed pointer is null";
    case Status::kMisaligned:
      return "a pointer is not aligned to its element";
    case Status::kWorkspaceTooSmall:
      return "workspace too small";
    case Status::kBadParameter:
      return "parameter outside its domain";
    case Status::kLaunchFailed:
      return "kernel launch failed";
    case Status::kOverlap:
      return "an output overlaps an operand";
  }
  return "unknown status";
}

}  // namespace tensorlint::kernels
