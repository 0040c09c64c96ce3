// What can be counted while it happens, and Prometheus's text of it. Counting takes no lock: it stands on the
// way of every request. Whoever counts owns the counters and writes them into an Exposition when asked.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tabella::metrics {

using Counter = std::atomic<uint64_t>;

// How often a value fell under each bound. Thread-safe.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(std::make_unique<Counter[]>(bounds.size() + 1)) {}

  void observe(double value);
  void observe(std::chrono::nanoseconds time) { observe(std::chrono::duration<double>(time).count()); }

 private:
  friend class Exposition;
  std::span<const double> bounds_;
  std::unique_ptr<Counter[]> counts_;  // the last one: above all bounds
  std::atomic<double> sum_{0};
};

// 0.1 ms to 10 s.
std::span<const double> latency_bounds();
// 1 to 4096, by doubling.
std::span<const double> size_bounds();

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// All metrics at one moment, in Prometheus's text format.
class Exposition {
 public:
  void counter(std::string_view name, std::string_view help, double value, Labels labels = {});
  void gauge(std::string_view name, std::string_view help, double value, Labels labels = {});
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram,
                 Labels labels = {});

  std::string text() const;

 private:
  struct Family {
    std::string help;
    std::string type;
    std::string samples;
  };
  Family& family(std::string_view name, std::string_view help, std::string_view type);

  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace tabella::metrics
