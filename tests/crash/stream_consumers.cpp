// Three readers share one stream in this process, two of which come and go, while items are written. Each
// record that is handled is a line in a log: "item version". Made to be killed at any moment;
// test_consumers.py does that.
//
//   stream_consumers run FOLDER LOG      until killed
//   stream_consumers drain FOLDER LOG    writes nothing; ends, with "item version" of each item, once all is
//   handled
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "engine/engine.h"
#include "item/number.h"
#include "store/stream_reader.h"
#include "support/run.h"

namespace tabella {
namespace {

using test::run;

constexpr int kItems = 30;
constexpr const char* kTable = "items";

item::Item key_of(int item) {
  auto key = item::Value::map();
  key.set_member("pk", item::Value::string(std::to_string(item)));
  return item::encode_item(key);
}

void make_table(store::Store& store) {
  if (run(store.describe_table(kTable))) return;
  store::CreateTableRequest request;
  request.definition.name = kTable;
  request.definition.billing_mode = store::BillingMode::pay_per_request;
  request.definition.attributes = {{"pk", item::Type::S}};
  request.definition.key_schema = {{"pk", store::KeyRole::hash}};
  request.definition.stream = store::StreamView::new_image;
  if (auto made = run(store.create_table(std::move(request))); !made)
    throw std::runtime_error(made.error().message);
}

// One more version of an item.
void write(store::Store& store, int item) {
  store::UpdateItemRequest request{.table = kTable, .key = key_of(item), .update = "ADD v :one"};
  auto values = item::Value::map();
  values.set_member(":one", item::Value::integer(1));
  request.options.attributes.values = item::encode_item(values);
  if (auto written = run(store.update_item(std::move(request))); !written)
    throw std::runtime_error(written.error().message);
}

int64_t version_of(item::ItemView item) { return item::number_to_int(item.find("v")->content()).value_or(0); }

class Log {
 public:
  explicit Log(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_APPEND, 0644)) {}
  void handled(const store::StreamRecord& record) {
    const auto item = std::string(record.keys.find("pk")->content());
    const auto version = version_of(*record.new_image);
    const auto line = fmt::format("{} {}\n", item, version);
    const std::lock_guard lock(mutex_);
    if (::write(file_, line.data(), line.size()) < 0) std::abort();
    auto& last = last_[item];
    last = std::max(last, version);
  }
  int64_t last(const std::string& item) {
    const std::lock_guard lock(mutex_);
    return last_[item];
  }

 private:
  const int file_;
  std::mutex mutex_;
  std::map<std::string, int64_t> last_;
};

class Worker {
 public:
  Worker(store::Store& store, const Clock& clock, Log& log)
      : reader_(store, clock, {.table = kTable, .consumer = "crash", .lease = std::chrono::milliseconds{300}},
                [&log](const store::StreamRecord& record) -> boost::asio::awaitable<void> {
                  log.handled(record);
                  co_return;
                }) {
    boost::asio::co_spawn(context_, reader_.run(), boost::asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Worker() {
    boost::asio::post(context_, [this] { reader_.stop(); });
    thread_.join();
  }

 private:
  store::StreamReader reader_;
  boost::asio::io_context context_{1};
  std::thread thread_;
};

void write_for_ever(store::Store& store, unsigned seed) {
  std::mt19937 random(seed);
  while (true) write(store, static_cast<int>(random() % kItems));
}

void come_and_go(store::Store& store, const Clock& clock, Log& log) {
  std::mt19937 random(std::random_device{}());
  const Worker stays(store, clock, log);
  std::unique_ptr<Worker> others[2];
  while (true) {
    auto& other = others[random() % 2];
    if (other)
      other.reset();
    else
      other = std::make_unique<Worker>(store, clock, log);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 150));
  }
}

// The log of this run says of what was handled before only that it was: the items' last versions do.
void drain(store::Store& store, const Clock& clock, Log& log) {
  for (int i = 0; i < kItems; ++i) write(store, i);
  const Worker a(store, clock, log);
  const Worker b(store, clock, log);
  for (int i = 0; i < kItems; ++i) {
    const auto item = run(store.get_item({.table = kTable, .key = key_of(i)}));
    const auto version = version_of(*item->item);
    while (log.last(std::to_string(i)) < version) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fmt::print("{} {}\n", i, version);
  }
}

int main(const std::string& mode, const char* folder, const char* log_file) {
  const SystemClock clock;
  engine::Engine store({.folder = folder, .durability = engine::Durability::sync}, clock);
  Log log(log_file);
  make_table(store);
  if (mode == "drain") {
    drain(store, clock, log);
    return 0;
  }
  std::puts("running");
  std::fflush(stdout);
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < 4; ++i)
    writers.emplace_back([&store, i] { write_for_ever(store, std::random_device{}() + i); });
  come_and_go(store, clock, log);
  return 0;
}

}  // namespace
}  // namespace tabella

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return tabella::main(argv[1], argv[2], argv[3]);
}
