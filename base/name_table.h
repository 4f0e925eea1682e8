#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

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
  std::size_t home(std::uint64_t key) const { return table_hash(0, key) & (slots_.size() - 1); }
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

/// From (graph, name) to a non-zero number. Graph 0, by far the largest, has a plain array over names: they are
/// numbered in the order of the file, so neighbours in the file are neighbours here.
class ScopedIndex {
 public:
  /// 0 when the pair is not there.
  std::uint32_t find(std::uint32_t graph, std::uint32_t name) const {
    if (graph != 0) return others_.find(key(graph, name));
    return name < first_.size() ? first_[name] : 0;
  }
  /// The slot of the pair, 0 in it when new; valid until the next call.
  std::uint32_t& slot(std::uint32_t graph, std::uint32_t name) {
    if (graph != 0) return others_[key(graph, name)];
    if (name >= first_.size()) first_.resize(std::size_t{name} + 1);
    return first_[name];
  }
  void reserve(std::size_t names) { first_.reserve(names); }

 private:
  static std::uint64_t key(std::uint32_t graph, std::uint32_t name) { return std::uint64_t{graph} << 32 | name; }

  std::vector<std::uint32_t> first_;
  FlatMap others_;
};

/// Interned names, dense numbers from 0 (the empty name). Texts are views that the owner keeps alive.
class NameTable {
 public:
  NameTable() { intern({}); }
  /// The same text elsewhere, of a name that is there.
  void move(std::uint32_t name, std::string_view text) { texts_[name] = text; }
  std::uint32_t intern(std::string_view text) { return intern(text, hash_of(text)); }
  /// `hash`: what ask_for gave for the text.
  std::uint32_t intern(std::string_view text, std::uint32_t hash) {
    if ((interned_ + 1) * 4 > slots_.size() * 3) grow(slots_.empty() ? 64 : slots_.size() * 2);
    std::size_t i = hash & (slots_.size() - 1);
    for (; slots_[i].number != 0; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == hash && texts_[slots_[i].number - 1] == text) return slots_[i].number - 1;
    ++interned_;
    texts_.push_back(text);
    slots_[i] = {hash, static_cast<std::uint32_t>(texts_.size())};
    return slots_[i].number - 1;
  }
  /// Slots lie apart: where several names are looked up, memory is asked for all of them before it has the first.
  std::uint32_t ask_for(std::string_view text) const {
    const std::uint32_t hash = hash_of(text);
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    return hash;
  }
  /// A number of its own for a text that nobody will look up: find() does not know it, equal texts get different
  /// numbers.
  std::uint32_t append(std::string_view text) {
    if (text.empty()) return 0;
    texts_.push_back(text);
    return static_cast<std::uint32_t>(texts_.size() - 1);
  }
  /// The number of a known name; 0 (the empty name's) for one that was never interned.
  std::uint32_t find(std::string_view text) const {
    const std::uint32_t hash = hash_of(text);
    for (std::size_t i = hash & (slots_.size() - 1); slots_[i].number != 0; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == hash && texts_[slots_[i].number - 1] == text) return slots_[i].number - 1;
    return 0;
  }
  std::string_view text(std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

  /// Those of size() that find() knows.
  std::size_t interned() const { return interned_; }
  void reserve(std::size_t names, std::size_t interned) {
    texts_.reserve(names);
    std::size_t slots = slots_.size();
    while (interned * 4 > slots * 3) slots *= 2;
    if (slots > slots_.size()) grow(slots);
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // number + 1; 0 is free
  };
  static std::uint32_t hash_of(std::string_view text) { return static_cast<std::uint32_t>(table_hash(text)); }
  void grow(std::size_t slots) {
    std::vector<Slot> larger(slots);
    for (const Slot& slot : slots_) {
      if (slot.number == 0) continue;
      std::size_t i = slot.hash & (larger.size() - 1);
      while (larger[i].number != 0) i = (i + 1) & (larger.size() - 1);
      larger[i] = slot;
    }
    slots_.swap(larger);
  }

  std::vector<std::string_view> texts_;
  std::vector<Slot> slots_;
  std::size_t interned_ = 0;
};

}  // namespace tensorlint
