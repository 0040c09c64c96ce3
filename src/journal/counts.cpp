#include "journal/counts.h"

#include <algorithm>

namespace tabella::journal {
namespace {
// Whoever collects metrics keeps one line for each journal, for long.
constexpr size_t kJournalsShown = 100;
}  // namespace

void Counts::placed(const std::string& journal, uint64_t last) {
  const std::lock_guard lock(mutex_);
  const auto found = last_positions_.find(journal);
  if (found != last_positions_.end())
    found->second = std::max(found->second, last);
  else if (last_positions_.size() < kJournalsShown)
    last_positions_.emplace(journal, last);
}

void Counts::write_metrics(metrics::Exposition& out) const {
  const auto count = [](const metrics::Counter& counter) { return static_cast<double>(counter.load()); };
  constexpr auto kAppends = "tabella_journal_appends_total";
  constexpr auto kAppendsHelp = "Appends, by what became of them";
  out.counter(kAppends, kAppendsHelp, count(appends), {{"result", "appended"}});
  out.counter(kAppends, kAppendsHelp, count(repeated_appends), {{"result", "repeated"}});
  out.counter(kAppends, kAppendsHelp, count(conflicts), {{"result", "conflict"}});
  out.counter("tabella_journal_events_appended_total", "Events that were appended", count(events_appended));
  out.counter("tabella_journal_events_read_total", "Events that were handed out", count(events_read));
  out.gauge("tabella_journal_live_readers", "Answers that wait for events", count(live_readers));
  out.counter("tabella_journal_finished_work_total",
              "Entities on which something was finished that somebody had left unfinished",
              count(finished_work));
  const std::lock_guard lock(mutex_);
  for (const auto& [journal, last] : last_positions_)
    out.gauge("tabella_journal_last_position", "Last position that this process gave out in a journal",
              static_cast<double>(last), {{"journal", journal}});
}

}  // namespace tabella::journal
