// The lists that the outbox keeps by name, over the embedded engine.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "outbox/configuration_sets.h"
#include "outbox/message.h"
#include "outbox/suppressions.h"
#include "outbox/templates.h"
#include "store/tables.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::outbox {
namespace {

using test::run;

class OutboxLists : public testing::Test {
 protected:
  OutboxLists() {
    EXPECT_TRUE(run(store::prepare_tables(engine_, {messages_plan("messages")}, store::Missing::create)));
  }

  test::Folder folder_;
  ManualClock clock_;
  engine::Engine engine_{{.folder = folder_.path() / "data", .durability = engine::Durability::relaxed},
                         clock_};
  Suppressions suppressions_{engine_, clock_, "messages"};
  Templates templates_{engine_, clock_, "messages"};
  ConfigurationSets sets_{engine_, clock_, "messages"};
};

TEST_F(OutboxLists, AnAddressIsSuppressedInWhateverCaseItIsWritten) {
  ASSERT_TRUE(run(suppressions_.add(
      {.address = "Ann@Example.com", .reason = "BOUNCE", .email = "e1", .diagnostic = "550 no"})));
  const auto found = run(suppressions_.find("ANN@example.COM")).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, "ann@example.com");
  EXPECT_EQ(found->reason, "BOUNCE");
  EXPECT_EQ(found->at, clock_.now());
  EXPECT_EQ(found->email, "e1");
  EXPECT_EQ(found->diagnostic, "550 no");
  EXPECT_TRUE(run(suppressions_.remove("ann@EXAMPLE.com")).value());
  EXPECT_FALSE(run(suppressions_.remove("ann@example.com")).value());
  EXPECT_FALSE(run(suppressions_.find("ann@example.com")).value());
}

TEST_F(OutboxLists, ThoseAmongManyThatAreSuppressedAreFound) {
  ASSERT_TRUE(run(suppressions_.add({.address = "b@x.org", .reason = "MANUAL"})));
  const auto among = run(suppressions_.among({"a@x.org", "B@X.ORG", "b@x.org", "c@x.org"})).value();
  EXPECT_EQ(among, std::set<std::string>{"b@x.org"});
  EXPECT_TRUE(run(suppressions_.among({})).value().empty());
}

TEST_F(OutboxLists, AListIsReadPageByPage) {
  for (const auto* address : {"c@x.org", "a@x.org", "b@x.org"})
    ASSERT_TRUE(run(suppressions_.add({.address = address, .reason = "COMPLAINT"})));
  std::vector<std::string> seen;
  std::string next;
  do {
    const auto page = run(suppressions_.list(2, next)).value();
    EXPECT_LE(page.addresses.size(), 2u);
    for (const auto& one : page.addresses) seen.push_back(one.address);
    next = page.next;
  } while (!next.empty());
  EXPECT_EQ(seen, (std::vector<std::string>{"a@x.org", "b@x.org", "c@x.org"}));
  const auto wrong = run(suppressions_.list(2, "no token"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, store::ErrorCode::validation);
}

TEST_F(OutboxLists, ATemplateIsMadeOnceAndChangedOnlyIfItIsThere) {
  EXPECT_FALSE(run(templates_.update({.name = "hello", .subject = "none"})).value());
  EXPECT_TRUE(run(templates_.create({.name = "hello", .subject = "Hi {{name}}", .text = "t", .html = "<p>"}))
                  .value());
  EXPECT_FALSE(run(templates_.create({.name = "hello", .subject = "other"})).value());
  const auto created = clock_.now();
  clock_.advance(std::chrono::hours{1});
  EXPECT_TRUE(run(templates_.update({.name = "hello", .subject = "New", .html = "<b>"})).value());
  const auto found = run(templates_.find("hello")).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->subject, "New");
  EXPECT_FALSE(found->text);
  EXPECT_EQ(found->html, "<b>");
  EXPECT_EQ(found->created, created);
  EXPECT_TRUE(run(templates_.remove("hello")).value());
  EXPECT_FALSE(run(templates_.remove("hello")).value());
  EXPECT_FALSE(run(templates_.find("hello")).value());
}

TEST_F(OutboxLists, ATemplateMayBeLargerThanARow) {
  const std::string text(200 * 1024, 't');
  const std::string html(299 * 1024, 'h');
  EXPECT_TRUE(run(templates_.create({.name = "large", .subject = "s", .text = text, .html = html})).value());
  const auto found = run(templates_.find("large")).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, text);
  EXPECT_EQ(found->html, html);
  EXPECT_TRUE(run(templates_.update({.name = "large", .subject = "s", .text = "small"})).value());
  EXPECT_EQ(run(templates_.find("large")).value()->text, "small");
  const auto too_large =
      run(templates_.create({.name = "huge", .subject = "s", .html = std::string(501 * 1024, 'x')}));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, store::ErrorCode::validation);
}

TEST_F(OutboxLists, TemplatesAreListedWithoutTheirBodies) {
  for (const auto* name : {"b", "a"}) ASSERT_TRUE(run(templates_.create({.name = name, .subject = "s"})));
  const auto page = run(templates_.list(10, "")).value();
  ASSERT_EQ(page.templates.size(), 2u);
  EXPECT_EQ(page.templates[0].name, "a");
  EXPECT_EQ(page.templates[0].created, clock_.now());
  EXPECT_TRUE(page.next.empty());
}

TEST_F(OutboxLists, AConfigurationSetIsThereUntilItIsDeleted) {
  EXPECT_TRUE(run(sets_.create("news")).value());
  EXPECT_FALSE(run(sets_.create("news")).value());
  EXPECT_TRUE(run(sets_.exists("news")).value());
  EXPECT_EQ(run(sets_.list(10, "")).value().names, std::vector<std::string>{"news"});
  EXPECT_TRUE(run(sets_.remove("news")).value());
  EXPECT_FALSE(run(sets_.exists("news")).value());
}

}  // namespace
}  // namespace tabella::outbox
