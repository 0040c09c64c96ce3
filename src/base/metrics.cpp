#include "base/metrics.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tabella::metrics {
namespace {

constexpr std::array<double, 16> kLatencies = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                               0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
constexpr std::array<double, 13> kSizes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n')
      out.append("\\n");
    else
      out.push_back(c);
  }
  return out;
}

std::string label_text(Labels labels, std::string_view bound = {}) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text.append(fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(value)));
  };
  for (const auto& [name, value] : labels) add(name, value);
  if (!bound.empty()) add("le", bound);
  return text.empty() ? text : text + "}";
}

}  // namespace

std::span<const double> latency_bounds() { return kLatencies; }
std::span<const double> size_bounds() { return kSizes; }

void Histogram::observe(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Exposition::Family& Exposition::family(std::string_view name, std::string_view help, std::string_view type) {
  auto at = families_.find(name);
  if (at == families_.end())
    at = families_.emplace(name, Family{std::string(help), std::string(type), {}}).first;
  return at->second;
}

void Exposition::counter(std::string_view name, std::string_view help, double value, Labels labels) {
  family(name, help, "counter").samples.append(fmt::format("{}{} {}\n", name, label_text(labels), value));
}

void Exposition::gauge(std::string_view name, std::string_view help, double value, Labels labels) {
  family(name, help, "gauge").samples.append(fmt::format("{}{} {}\n", name, label_text(labels), value));
}

void Exposition::histogram(std::string_view name, std::string_view help, const Histogram& histogram,
                           Labels labels) {
  auto& samples = family(name, help, "histogram").samples;
  uint64_t sum = 0;
  for (size_t i = 0; i < histogram.bounds_.size(); ++i) {
    sum += histogram.counts_[i];
    samples.append(fmt::format("{}_bucket{} {}\n", name,
                               label_text(labels, fmt::format("{}", histogram.bounds_[i])), sum));
  }
  sum += histogram.counts_[histogram.bounds_.size()];
  samples.append(fmt::format("{}_bucket{} {}\n", name, label_text(labels, "+Inf"), sum));
  samples.append(fmt::format("{}_sum{} {}\n", name, label_text(labels), histogram.sum_.load()));
  samples.append(fmt::format("{}_count{} {}\n", name, label_text(labels), sum));
}

std::string Exposition::text() const {
  std::string out;
  for (const auto& [name, family] : families_)
    out.append(
        fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", name, family.help, name, family.type, family.samples));
  return out;
}

}  // namespace tabella::metrics
