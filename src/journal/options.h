// What the journal can be told by whoever starts the process.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/options.h"
#include "journal/layout.h"

namespace tabella::journal {

enum class LayoutKind { blocks, keys };

struct Options {
  std::string table = "tabella-journal";
  std::string snapshots_table = "tabella-snapshots";
  std::string name = "journal";  // what a '-' in a path stands for
  LayoutKind layout = LayoutKind::blocks;
  size_t sequence_shards = 0;  // 0: the layout's own default
  std::chrono::milliseconds operation_timeout{10'000};
  std::chrono::seconds retention = kForever;
};

OptionGroup option_table(Options& options);

// Of options that have been checked.
std::unique_ptr<Layout> layout_of(const Options& options, const std::string& table_prefix);

}  // namespace tabella::journal
