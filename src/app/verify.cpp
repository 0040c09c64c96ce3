#include "app/verify.h"

#include <unistd.h>
#include <cstdio>

#include <fmt/format.h>

#include "engine/verify.h"

namespace tabella::app {
namespace {

void show_entries_seen(uint64_t entries) {
  fmt::print(stderr, "\r{} entries looked at", entries);
  std::fflush(stderr);
}

}  // namespace

int verify(const VerifyOptions& options) {
  const bool watched = isatty(STDERR_FILENO) == 1;
  try {
    const auto report =
        engine::verify(options.data, watched ? show_entries_seen : std::function<void(uint64_t)>());
    if (watched) fmt::print(stderr, "\r\x1b[K");
    for (const auto& problem : report.first_problems) fmt::print("{}\n", problem);
    if (report.problems > report.first_problems.size())
      fmt::print("and {} more problems\n", report.problems - report.first_problems.size());
    fmt::print(
        "tables: {}, items: {}, index entries: {}, expiry entries: {}, streams: {}, records: {}, tokens: {}; "
        "{}\n",
        report.tables, report.items, report.index_entries, report.expiry_entries, report.streams,
        report.records, report.tokens,
        report.problems == 0   ? std::string("all is well")
        : report.problems == 1 ? std::string("1 problem")
                               : fmt::format("{} problems", report.problems));
    return report.problems == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 2;
  }
}

}  // namespace tabella::app
