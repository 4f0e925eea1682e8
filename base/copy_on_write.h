#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tensorlint {

/// Copies share one value until one of them changes it: options that hold for thousands of inputs. Each thread has
/// copies of its own.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  explicit CopyOnWrite(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& get() const {
    static const T kNone;
    return value_ == nullptr ? kNone : *value_;
  }
  T& edit() {
    if (value_ == nullptr)
      value_ = std::make_shared<T>();
    else if (value_.use_count() > 1)
      value_ = std::make_shared<T>(*value_);
    else
      std::atomic_thread_fence(std::memory_order_acquire);  // after another thread's last look at it
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;  // null: a default one
};

/// As much of a std::map as such options need.
template <typename Key, typename Value>
class SharedMap {
 public:
  using Map = std::map<Key, Value, std::less<>>;

  bool empty() const { return map_.get().empty(); }
  std::size_t size() const { return map_.get().size(); }
  auto begin() const { return map_.get().begin(); }
  auto end() const { return map_.get().end(); }
  template <typename Wanted>
  auto find(const Wanted& key) const {
    return map_.get().find(key);
  }

  Value& operator[](Key key) { return map_.edit()[std::move(key)]; }
  template <typename... Arguments>
  void emplace(Arguments&&... arguments) {
    map_.edit().emplace(std::forward<Arguments>(arguments)...);
  }

 private:
  CopyOnWrite<Map> map_;
};

/// As much of a std::vector.
template <typename Value>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::initializer_list<Value> values) : list_(std::vector<Value>(values)) {}
  SharedList(std::vector<Value> values) : list_(std::move(values)) {}

  bool empty() const { return list_.get().empty(); }
  std::size_t size() const { return list_.get().size(); }
  auto begin() const { return list_.get().begin(); }
  auto end() const { return list_.get().end(); }
  const Value& operator[](std::size_t i) const { return list_.get()[i]; }

  Value& operator[](std::size_t i) { return list_.edit()[i]; }
  void clear() { list_ = {}; }
  void push_back(Value value) { list_.edit().push_back(std::move(value)); }

 private:
  CopyOnWrite<std::vector<Value>> list_;
};

}  // namespace tensorlint
