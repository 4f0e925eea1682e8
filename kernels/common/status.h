#pragma once

namespace tensorlint::kernels {

/// What a call returns. Nothing is launched unless the status is kOk or kLaunchFailed.
enum class Status {
  kOk,
  kBadShape,           // a negative extent, a product over 2^62, an axis outside the rank or given twice
  kTooManyAxisGroups,  // more alternations of kept and reduced axes than kMaxAxisGroups
  kUnsupportedDtype,   // no instance for this element type and operation
  kEmptyArgument,      // argmax or argmin over no elements
  kNullPointer,        // a pointer that this call needs
  kMisaligned,         // a pointer not aligned to its element
  kWorkspaceTooSmall,  // less than the workspace query's answer
  kBadParameter,       // a loss parameter outside its domain
  kLaunchFailed,       // the CUDA runtime refused; cudaGetLastError has been taken
};

/// The status in words, lower case.
constexpr const char* describe(Status status) {
  switch (status) {
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
  }
  return "unknown status";
}

}  // namespace tensorlint::kernels
