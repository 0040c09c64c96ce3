// Memory that strangers may make us take, all together.
#pragma once

#include <atomic>
#include <cstddef>

namespace tabella::net {

// Buffers up to this size are a connection's own; beyond, they are counted.
inline constexpr size_t kFreeBuffer = 64 * 1024;

// Takes its part of the budget as a buffer grows and gives it back when it shrinks.
class BudgetShare {
 public:
  BudgetShare(std::atomic<size_t>& used, size_t limit) : used_(used), limit_(limit) {}
  ~BudgetShare() { used_ -= mine_; }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  // What it has of the budget.
  size_t size() const { return mine_; }

  bool resize(size_t bytes) {
    const size_t counted = bytes > kFreeBuffer ? bytes : 0;
    if (counted > mine_ && used_ + (counted - mine_) > limit_) return false;
    used_ += counted - mine_;
    mine_ = counted;
    return true;
  }

 private:
  std::atomic<size_t>& used_;
  const size_t limit_;
  size_t mine_ = 0;
};

}  // namespace tabella::net
