// A whole Tabella inside this program.
#include "library/instance.h"

#include <gtest/gtest.h>

#include "support/folder.h"

namespace tabella {
namespace {

journal::AppendOutcome append(Instance& instance, size_t count) {
  journal::Append wanted{.entity = {"things", "a"},
                         .events = std::vector<journal::NewEvent>(count, {.payload = "x"})};
  auto outcome = instance.run(instance.journal().append(std::move(wanted)));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome.value_or(journal::Conflict{});
}

TEST(Instance, GivesEventsTheirPositionsWhereItIsAsked) {
  const test::Folder folder;
  {
    Local before(folder.path());
    append(before, 2);
  }
  Local local(folder.path(), {.background = true});
  append(local, 3);
  uint64_t last = 0;
  for (int waited = 0; last < 5 && waited < 60; ++waited) {
    local.run(local.watch().wait_for_position("things", last, std::chrono::seconds{1}));
    last = local.run(local.order().last("things")).value_or(0);
  }
  const auto page = local.run(local.order().read("things", 0, 10, {}));
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->events.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(page->events[i].position, i + 1);
    EXPECT_EQ(page->events[i].event.number(), i + 1);
  }
}

TEST(Instance, SaysWhyItCannotBeOpened) {
  const test::Folder folder;
  EXPECT_THROW(Local(folder.path(), {.create_tables = false}), std::runtime_error);
  const Local local(folder.path());
  EXPECT_THROW(Local(folder.path()), std::runtime_error);
  EXPECT_THROW(open("ftp://localhost"), std::runtime_error);
}

TEST(Instance, PassesOnWhatIsThrown) {
  const test::Folder folder;
  Local local(folder.path());
  const auto broken = []() -> boost::asio::awaitable<int> {
    throw std::runtime_error("a bug");
    co_return 1;
  };
  EXPECT_THROW(local.run(broken()), std::runtime_error);
}

}  // namespace
}  // namespace tabella
