#pragma once

#include <unistd.h>

#include <utility>

namespace tensorlint {

/// An open file or folder, closed when this goes.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  bool ok() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace tensorlint
