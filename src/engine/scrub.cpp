#include "engine/scrub.h"

#include <fmt/format.h>

#include "base/log.h"

namespace tabella::engine {
namespace {

constexpr uint64_t kBytesPerSecond = 64u << 20;
constexpr std::chrono::seconds kFirst{5};  // a start has other things to do

}  // namespace

Scrub::Scrub(const Database& database, std::filesystem::path folder)
    : database_(database), folder_(std::move(folder)), thread_([this] { run(); }) {}

std::string Scrub::damage() const {
  const std::lock_guard lock(mutex_);
  return damage_;
}

void Scrub::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_scrubbed_bytes_total",
              "Bytes of data files compared with their checksums since the start",
              static_cast<double>(bytes_.load()));
  out.counter("tabella_damaged_files_total", "Data files that were found to be damaged",
              static_cast<double>(damaged_files_.load()));
}

void Scrub::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// False if it is to stop.
bool Scrub::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

void Scrub::run() {
  if (!pause(kFirst)) return;
  try {
    for (const auto& file : database_.files()) {
      const auto wrong = check_file(folder_, file, true);
      bytes_ += file.size;
      // One that is gone was replaced meanwhile.
      if (!wrong.empty() && std::filesystem::exists(folder_ / file.name)) {
        ++damaged_files_;
        log::error("{}; `tabella verify` says what is in it", wrong);
        const std::lock_guard lock(mutex_);
        damage_ = wrong;
      }
      if (!pause(std::chrono::milliseconds(1000 * file.size / kBytesPerSecond))) return;
    }
  } catch (const std::exception& error) {
    log::warning("the data files could not be looked through: {}", error.what());
  }
}

}  // namespace tabella::engine
