#include "app/salvage.h"

#include <unistd.h>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "access/secrets.h"
#include "engine/salvage.h"

namespace tabella::app {

using access::kSecretKey;

namespace {

void show_items_copied(uint64_t items) {
  fmt::print(stderr, "\r{} items copied", items);
  std::fflush(stderr);
}

void show(const engine::SalvageReport::Table& table) {
  fmt::print("table {}: {} items copied", table.name, table.copied);
  if (table.expected < 0)
    fmt::print("; how many there were is not known");
  else if (static_cast<int64_t>(table.copied) < table.expected)
    fmt::print("; {} of {} are lost", table.expected - static_cast<int64_t>(table.copied), table.expected);
  if (table.unreadable > 0) fmt::print("; {} are damaged", table.unreadable);
  if (table.gaps > 0) fmt::print("; {} places could not be read", table.gaps);
  fmt::print("\n");
}

// Without it nobody could read the secrets in the tables.
void copy_secret_key(const SalvageOptions& options) {
  const auto key = options.from / kSecretKey;
  if (std::filesystem::exists(key)) std::filesystem::copy_file(key, options.to / kSecretKey);
}

}  // namespace

int salvage(const SalvageOptions& options) {
  const bool watched = isatty(STDERR_FILENO) == 1;
  try {
    const auto report = engine::salvage(options.from, options.to,
                                        watched ? show_items_copied : std::function<void(uint64_t)>());
    if (watched) fmt::print(stderr, "\r\x1b[K");
    copy_secret_key(options);
    for (const auto& table : report.tables) show(table);
    for (const auto& remark : report.remarks) fmt::print("{}\n", remark);
    fmt::print("{} is a store now: `tabella serve --data {}` serves it\n", options.to.string(),
               options.to.string());
    return report.complete() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 2;
  }
}

}  // namespace tabella::app
