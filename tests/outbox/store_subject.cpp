// The contract on the store's own tables, with the reader of their stream that counts.
#include "base/clock.h"
#include "base/time_text.h"
#include "engine/engine.h"
#include "outbox/counts.h"
#include "outbox/message.h"
#include "outbox/statements.h"
#include "outbox/store_backend.h"
#include "outbox/subject.h"
#include "store/leases.h"
#include "store/stream_reader.h"
#include "support/folder.h"
#include "support/own_thread.h"
#include "support/run.h"

namespace tabella::outbox {
namespace {

constexpr const char* kEmails = "emails";
constexpr const char* kMessages = "messages";
constexpr const char* kConsumers = "consumers";

class StoreSubject final : public BackendSubject {
 public:
  StoreSubject() {
    const auto prepared = test::run(store::prepare_tables(
        engine_, {StoreBackend::plan(kEmails), messages_plan(kMessages), store::Leases::plan(kConsumers)},
        store::Missing::create));
    if (!prepared) throw std::runtime_error(prepared.error().message);
    reader_ = std::make_unique<test::OwnThread<store::StreamReader>>(std::make_unique<store::StreamReader>(
        engine_, clock_,
        store::StreamReader::Options{.table = kEmails, .consumer = "counts", .lease_table = kConsumers},
        [this](const std::string& shard,
               std::span<const store::StreamRecord> records) -> boost::asio::awaitable<void> {
          if (const auto counted = co_await counts_.count(shard, records); !counted)
            throw std::runtime_error(counted.error().message);
        }));
  }
  ~StoreSubject() override { reader_->stop(); }

  Backend& backend() override { return backend_; }
  Backend& other() override { return other_; }

  void foreign_accept(const std::string& id, const std::string& payload_file_path) override {
    execute({insert(id, kMeta, "ACCEPTED", payload_file_path), insert(id, "ACCEPTED", "", payload_file_path)})
        .value();
  }

  // As it is described: the meta row is updated, and the row of the state is the lock.
  bool foreign_move(const std::string& id, State, State to, const std::string& reason) override {
    StatementBuilder update(
        "UPDATE \"emails\" SET Attributes.Latest=?, Attributes.UpdatedAt=?, Attributes.Reason=? WHERE Id=? "
        "AND "
        "Status=?");
    update.with(name_of(to)).with(second_now()).with(reason).with(id).with(kMeta);
    return execute({std::move(update), insert(id, name_of(to), "", "", reason)}).has_value();
  }

 private:
  static std::string second_now() {
    return time_text(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  }
  static store::Statement insert(const std::string& id, std::string_view status, std::string_view latest,
                                 std::string_view payload, std::string_view reason = {}) {
    auto attributes = item::Value::map();
    const auto add = [&](const char* name, std::string_view text) {
      attributes.set_member(name, item::Value::string(std::string(text)));
    };
    if (!latest.empty()) add("Latest", latest);
    if (!payload.empty()) add("PayloadFilePath", payload);
    add("UpdatedAt", second_now());
    add("Reason", reason);
    StatementBuilder statement("INSERT INTO \"emails\" VALUE {'Id': ?, 'Status': ?, 'Attributes': ?}");
    statement.with(id).with(status).with(store::ValueRef(attributes));
    return std::move(statement);
  }
  store::Result<store::ExecuteTransactionResult> execute(std::vector<store::Statement> statements) {
    return test::run(engine_.execute_transaction({.statements = std::move(statements)}));
  }

  test::Folder folder_;
  SystemClock clock_;
  engine::Engine engine_{
      engine::Engine::Options{.folder = folder_.path(), .durability = engine::Durability::relaxed}, clock_};
  StoreBackend backend_{engine_, clock_, kEmails, kMessages, "one"};
  StoreBackend other_{engine_, clock_, kEmails, kMessages, "two"};
  Counts counts_{engine_, kMessages};
  std::unique_ptr<test::OwnThread<store::StreamReader>> reader_;
};

}  // namespace

std::unique_ptr<BackendSubject> make_store_subject() { return std::make_unique<StoreSubject>(); }

}  // namespace tabella::outbox
