#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/facts/hash.h"

namespace tensorlint {

/// Open-addressing map from a 64-bit key to a non-zero 32-bit number: no allocation per entry.
class FlatMap {
 public:
  /// 0 when the key is not there.
  std::uint32_t find(std::uint64_t key) const {
    if (slots_.empty()) return 0;
    for (std::size_t i = home(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].number == 0) return 0;
      if (slots_[i].key == key) return slots_[i].number;
    }
  }
  /// The slot of the key, 0 in it when new; valid until the next call.
  std::uint32_t& operator[](std::uint64_t key) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    std::size_t i = home(key);
    while (slots_[i].number != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i].number == 0) {
      slots_[i].key = key;
      ++size_;
    }
    return slots_[i].number;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::size_t home(std::uint64_t key) const { return mix(key, 0) & (slots_.size() - 1); }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == 0) continue;
      std::size_t i = home(slot.key);
      while (slots_[i].number != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;  // counts a slot that was asked for and left at 0 each time: grows early, never late
};

/// Interned names, dense numbers from 0 (the empty name). Texts are views that the owner keeps alive.
class NameTable {
 public:
  NameTable() { intern({}); }
  std::uint32_t intern(std::string_view text) {
    if ((texts_.size() + 1) * 4 > slots_.size() * 3) grow();
    const std::uint64_t hash = hash_of(text);
    std::size_t i = hash & (slots_.size() - 1);
    for (; slots_[i].number != 0; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == static_cast<std::uint32_t>(hash >> 32) && texts_[slots_[i].number - 1] == text) return slots_[i].number - 1;
    texts_.push_back(text);
    slots_[i] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(texts_.size())};
    return slots_[i].number - 1;
  }
  /// The number of a known name; 0 (the empty name's) for one that was never interned.
  std::uint32_t find(std::string_view text) const {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t i = hash & (slots_.size() - 1); slots_[i].number != 0; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == static_cast<std::uint32_t>(hash >> 32) && texts_[slots_[i].number - 1] == text) return slots_[i].number - 1;
    return 0;
  }
  std::string_view text(std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    std::uint32_t hash = 0;    // the upper half: the lower chooses the slot
    std::uint32_t number = 0;  // number + 1; 0 is free
  };
  static std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = text.size();
    for (; text.size() >= 8; text.remove_prefix(8)) hash = mix(hash, load(text.data(), 8));
    return mix(hash, load(text.data(), text.size()));
  }
  static std::uint64_t load(const char* bytes, std::size_t count) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, bytes, count);
    return word;
  }
  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : slots_.size() * 2);
    for (std::size_t number = 0; number < texts_.size(); ++number) {
      const std::uint64_t hash = hash_of(texts_[number]);
      std::size_t i = hash & (larger.size() - 1);
      while (larger[i].number != 0) i = (i + 1) & (larger.size() - 1);
      larger[i] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(number + 1)};
    }
    slots_.swap(larger);
  }

  std::vector<std::string_view> texts_;
  std::vector<Slot> slots_;
};

}  // namespace tensorlint
