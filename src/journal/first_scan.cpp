#include "journal/first_scan.h"

#include "base/log.h"
#include "journal/head_attributes.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::journal {

namespace {

constexpr int64_t kRowsPerPage = 1000;
constexpr std::string_view kScanId = "#scan";
constexpr std::string_view kScannedTo = "scanned_to";  // the last key, in its flat form
constexpr std::string_view kIsDone = "done";
constexpr std::chrono::milliseconds kScanRetry{1'000};

}  // namespace

item::Item FirstScan::mark_key() const {
  return store::Row()
      .set(head_attributes::kId, kScanId)
      .set(head_attributes::kPart, journal_.layout().table());
}

boost::asio::awaitable<void> FirstScan::run() {
  for (bool more = true; more && !stopping_;) {
    const auto page = co_await scan_page();
    more = page.value_or(true);
    if (page) continue;
    log::warning("the table {} cannot be looked through for events of other programs: {}",
                 journal_.layout().table(), page.error().message);
    co_await store::pause_for(kScanRetry);
  }
}

store::Async<bool> FirstScan::scan_page() {
  const auto& heads = journal_.heads().table();
  TABELLA_CO_ASSIGN(const auto mark,
                    co_await store_.get_item({.table = heads, .key = mark_key(), .consistent = true}));
  if (mark.item && store::flag_of(*mark.item, kIsDone)) co_return false;

  store::ScanRequest scan = store::Scan(journal_.layout().table()).limit(kRowsPerPage).consistent();
  if (mark.item) scan.options.start_key = item::Item(store::binary_of(*mark.item, kScannedTo));
  TABELLA_CO_ASSIGN(const auto page, co_await store_.scan(std::move(scan)));
  std::vector<Located> rows;
  for (const auto& row : page.items)
    if (auto located = journal_.layout().locate(row)) rows.push_back(std::move(*located));
  TABELLA_CO_TRY(co_await adoption_.adopt(std::move(rows)));

  auto update = store::Update(heads, mark_key());
  if (page.last_key)
    update.set(kScannedTo, store::Binary{page.last_key->bytes()});
  else
    update.set(kIsDone, true).remove(kScannedTo);
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  co_return page.last_key.has_value();
}

}  // namespace tabella::journal
