// The contract on the embedded engine.
#include "base/clock.h"
#include "contract/subjects.h"
#include "engine/engine.h"
#include "support/folder.h"

namespace tabella::contract {
namespace {

class EngineSubject final : public Subject {
 public:
  EngineSubject() { restart(); }

  store::Store& store() override { return *engine_; }
  void restart() override {
    engine_.reset();
    // What a test acknowledges is not what it is about: the crash tests watch the disk.
    engine_ = std::make_unique<engine::Engine>(
        engine::Engine::Options{.folder = folder_.path(), .durability = engine::Durability::relaxed}, clock_);
  }

  const Clock& clock() const override { return clock_; }
  bool advance(std::chrono::milliseconds by) override {
    clock_.advance(by);
    return true;
  }

 private:
  test::Folder folder_;
  ManualClock clock_{std::chrono::system_clock::now()};
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

std::unique_ptr<Subject> make_engine() { return std::make_unique<EngineSubject>(); }

}  // namespace tabella::contract
