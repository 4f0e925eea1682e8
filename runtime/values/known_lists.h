#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// What was found out about the elements of a sequence or an optional: any number of nodes hand on the same ones, which
/// are looked at once. Does not keep them.
template <typename Known>
class KnownLists {
 public:
  /// What `look` says of them, now or before.
  template <typename Look>
  Known of(const HostValue& value, const Look& look) {
    const auto& list = value.list();
    if (const auto found = known_.find(list.get()); found != known_.end() && found->second.list.lock() == list)
      return found->second.known;
    // Lists within are looked at on the way: what is known of them is not forgotten before the end.
    if (within_ == 0 && known_.size() >= kMost) known_.clear();
    ++within_;
    const Known known = look();
    --within_;
    known_.insert_or_assign(list.get(), Entry{list, known});
    return known;
  }
  void clear() { known_.clear(); }

 private:
  static constexpr std::size_t kMost = 256;
  struct Entry {
    std::weak_ptr<const std::vector<HostValue>> list;
    Known known;
  };
  std::map<const std::vector<HostValue>*, Entry> known_;
  int within_ = 0;
};

}  // namespace tensorlint::runtime
