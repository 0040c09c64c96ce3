#include "journal/options.h"

#include "journal/event.h"

namespace tabella::journal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

OptionCheck check_name(std::string_view text) {
  if (auto problem = problem_with_journal(text); !problem.empty()) return std::unexpected(std::move(problem));
  return {};
}

OptionCheck check_tables(const Options& options) {
  if (options.table == options.snapshots_table)
    return std::unexpected("--journal-table and --journal-snapshots-table are two tables, not one");
  return {};
}

}  // namespace

OptionGroup option_table(Options& options) {
  OptionGroup group{.title = "Journal",
                    .check = [&options](const OptionSources&) { return check_tables(options); }};
  group.options = {
      {"--journal-table", text_option(options.table, "NAME"),
       "Table with the events, which programs with Akka's or Pekko's plugin can share"},
      {"--journal-snapshots-table", text_option(options.snapshots_table, "NAME"),
       "Table with the snapshots, which they can share likewise"},
      {"--journal-name", text_option(options.name, "NAME", check_name),
       "The journal that '-' stands for in paths: /journal/-/…"},
      {"--journal-layout",
       choice_option(options.layout, {{"blocks", LayoutKind::blocks}, {"keys", LayoutKind::keys}}),
       "How events lie in their table: as the plugins have it since their 1.0, or by a hash key alone"},
      {"--journal-sequence-shards,--sequence-shards", number_option(options.sequence_shards, 0, 10'000),
       "Among how many rows the plugins spread the counters of an entity; 0: 10 for blocks, 1000 for keys"},
      {"--journal-operation-timeout,--operation-timeout",
       time_option(options.operation_timeout, milliseconds{100}, hours{1}),
       "How long a call may take, its repetitions included"},
      {"--journal-retention", lifetime_option(options.retention),
       "How long events are kept that say nothing else themselves, as in 90d; off: for ever"}};
  return group;
}

std::unique_ptr<Layout> layout_of(const Options& options, const std::string& table_prefix) {
  Layout::Options layout{.table = table_prefix + options.table, .sequence_shards = options.sequence_shards};
  return options.layout == LayoutKind::blocks ? make_blocks_layout(std::move(layout))
                                              : make_keys_layout(std::move(layout));
}

}  // namespace tabella::journal
