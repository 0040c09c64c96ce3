#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "search/manifest.h"
#include "search/segment.h"
#include "search/terms.h"
#include "search/verified.h"

namespace tabella::search {
namespace {

Document document(std::string id, std::vector<Piece> pieces, std::vector<std::string> keys = {}) {
  return {.id = std::move(id), .expires = 100, .pieces = std::move(pieces), .keys = std::move(keys)};
}

// A segment in memory, searched as Snapshot does it.
class Searched {
 public:
  explicit Searched(SegmentBlocks blocks, size_t count)
      : directory_(blocks.directory), terms_(std::move(blocks.terms)), count_(count) {}

  std::vector<size_t> find(char field, std::string_view text) const {
    const auto query = terms_for(field, text);
    Slots all(count_, true);
    for (const auto& term : query.terms) {
      Slots with(count_);
      find_term(terms_[directory_.block_of_term(term)], term, with);
      all &= with;
    }
    if (!query.prefix.empty()) {
      Slots with(count_);
      const auto [begin, end] = directory_.blocks_of_prefix(query.prefix);
      for (size_t block = begin; block < end; ++block) find_prefix(terms_[block], query.prefix, with);
      all &= with;
    }
    std::vector<size_t> slots;
    for (size_t i = 0; i < count_; ++i)
      if (all.test(i)) slots.push_back(i);
    return slots;
  }
  const std::vector<std::string>& blocks() const { return terms_; }

 private:
  Directory directory_;
  std::vector<std::string> terms_;
  size_t count_;
};

using SlotList = std::vector<size_t>;

TEST(Segment, FindsEverySubstringInEveryScript) {
  SegmentBuilder builder;
  builder.add(document("1", {{'s', "hello world"}, {'*', "東京タワー"}}));
  builder.add(document("2", {{'s', "yellow"}, {'*', "ab"}}));
  builder.add(document("3", {{'f', "world@example.org"}}));
  const Searched segment(builder.finish(), 3);
  EXPECT_EQ(segment.find('*', "ello"), (SlotList{0, 1}));
  EXPECT_EQ(segment.find('*', "world"), (SlotList{0, 2}));
  EXPECT_EQ(segment.find('f', "world"), (SlotList{2}));
  EXPECT_EQ(segment.find('s', "world"), (SlotList{0}));
  EXPECT_EQ(segment.find('*', "京タ"), (SlotList{0}));
  EXPECT_EQ(segment.find('*', "ー"), (SlotList{0}));  // at the end of its piece
  EXPECT_EQ(segment.find('*', "ab"), (SlotList{1}));
  EXPECT_EQ(segment.find('*', "b"), (SlotList{1}));
  EXPECT_EQ(segment.find('*', "o w"), (SlotList{0}));
  EXPECT_EQ(segment.find('*', "dx"), SlotList{});
  EXPECT_EQ(segment.find('*', "d東"), SlotList{}) << "pieces do not run into each other";
}

TEST(Segment, IsTheSameAsLookingAtEachDocument) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  SegmentBuilder builder;
  for (size_t i = 0; i < 300; ++i) {
    std::string text;
    for (size_t n = random() % 200; n > 0; --n) text.push_back(static_cast<char>('a' + random() % 4));
    builder.add(document(std::to_string(1000 + i), {{'*', text}}));
    texts.push_back(std::move(text));
  }
  const Searched segment(builder.finish(), texts.size());
  EXPECT_GT(segment.blocks().size(), 0u);
  for (int i = 0; i < 500; ++i) {
    std::string query;
    for (size_t n = 1 + random() % 5; n > 0; --n) query.push_back(static_cast<char>('a' + random() % 5));
    const auto found = segment.find('*', query);
    for (size_t slot = 0; slot < texts.size(); ++slot) {
      const bool has = texts[slot].find(query) != std::string::npos;
      const bool says = std::ranges::binary_search(found, slot);
      EXPECT_TRUE(says || !has) << query << " in " << texts[slot];
      if (terms_for('*', query).exact) EXPECT_EQ(says, has) << query << " in " << texts[slot];
    }
  }
}

TEST(Segment, MergesIntoOneWithoutThoseThatAreGone) {
  SegmentBuilder first;
  SegmentBuilder second;
  SegmentBuilder expected;
  const auto a = document("1", {{'*', "alpha"}}, {"inbox:a"});
  const auto b = document("2", {{'*', "beta"}}, {"inbox:a", "inbox:b"});
  const auto c = document("3", {{'s', "alphabet"}});
  const auto d = document("4", {{'*', "delta"}}, {"inbox:b"});
  for (const auto* document : {&a, &b}) first.add(*document);
  for (const auto* document : {&c, &d}) second.add(*document);
  for (const auto* document : {&a, &c, &d}) expected.add(*document);
  std::vector<MergeInput> inputs;
  for (auto* builder : {&first, &second}) {
    auto entries = builder->entries();
    const auto count = entries.size();
    inputs.push_back(
        {.terms = builder->finish().terms, .entries = std::move(entries), .kept = Slots(count, true)});
  }
  inputs[0].kept.clear(1);
  const auto merged = merge(std::move(inputs));
  const auto wanted = expected.finish();
  EXPECT_EQ(merged.blocks.terms, wanted.terms);
  EXPECT_EQ(merged.blocks.entries, wanted.entries);
  EXPECT_EQ(merged.blocks.directory, wanted.directory);
}

TEST(Segment, MergesDocumentsThatComeBetweenOthers) {
  std::vector<Document> documents;
  for (size_t i = 0; i < 40; ++i)
    documents.push_back(document(std::to_string(100 + i), {{'*', i % 3 == 0 ? "alpha" : "beta"}},
                                 {i % 2 == 0 ? "inbox:even" : "inbox:odd"}));
  SegmentBuilder expected;
  std::array<SegmentBuilder, 3> parts;
  for (size_t i = 0; i < documents.size(); ++i) {
    expected.add(documents[i]);
    parts[i % 3].add(documents[i]);
  }
  std::vector<MergeInput> inputs;
  for (auto& part : parts) {
    auto entries = part.entries();
    const auto count = entries.size();
    inputs.push_back(
        {.terms = part.finish().terms, .entries = std::move(entries), .kept = Slots(count, true)});
  }
  const auto merged = merge(std::move(inputs));
  const auto wanted = expected.finish();
  EXPECT_EQ(merged.blocks.terms, wanted.terms);
  EXPECT_EQ(merged.blocks.entries, wanted.entries);
}

TEST(Verified, RemembersWhatWasLookedAtAndForgetsTheOldest) {
  Verified verified(100'000);
  Verdict seen(1000);
  seen.looked_at.set(3);
  seen.looked_at.set(4);
  seen.matching.set(4);
  verified.add("segment", "text", seen);
  Verdict more(1000);
  more.looked_at.set(999);
  verified.add("segment", "text", more);
  const auto known = verified.get("segment", "text", 1000);
  EXPECT_EQ(known.looked_at.count(), 3u);
  EXPECT_TRUE(known.matching.test(4));
  EXPECT_EQ(known.matching.count(), 1u);
  EXPECT_EQ(verified.get("segment", "other", 1000).looked_at.count(), 0u);
  EXPECT_EQ(verified.get("another", "text", 1000).looked_at.count(), 0u);
  for (int i = 0; i < 1000; ++i) {
    verified.add("filler " + std::to_string(i), "text", seen);
    verified.get("segment", "text", 1000);
  }
  EXPECT_EQ(verified.get("filler 0", "text", 1000).looked_at.count(), 0u);
  EXPECT_EQ(verified.get("filler 999", "text", 1000).looked_at.count(), 2u);
  EXPECT_EQ(verified.get("segment", "text", 1000).looked_at.count(), 3u) << "what is used stays";
}

TEST(Segment, KeepsItsEntriesInBlocks) {
  SegmentBuilder builder;
  for (size_t i = 0; i < 600; ++i) builder.add(document(std::to_string(10'000 + i), {{'*', "x"}}));
  const auto blocks = builder.finish();
  ASSERT_EQ(blocks.entries.size(), 3u);
  const Directory directory(blocks.directory);
  EXPECT_EQ(directory.block_of_id("10255"), 0u);
  EXPECT_EQ(directory.block_of_id("10256"), 1u);
  EXPECT_EQ(directory.block_of_id("99999"), 2u);
  EXPECT_EQ(read_entries(blocks.entries[2]).back().id, "10599");
}

TEST(Slots, CountAndCombine) {
  Slots all(70, true);
  EXPECT_EQ(all.count(), 70u);
  Slots some(70);
  some.set(3);
  some.set(69);
  all -= some;
  EXPECT_EQ(all.count(), 68u);
  all |= some;
  all &= some;
  EXPECT_EQ(all.count(), 2u);
  EXPECT_TRUE(all.test(69));
}

TEST(Manifest, ReadsBackAsItWas) {
  Manifest manifest{.version = 3, .indexed_to = "x", .traits = 5, .settle = 2000};
  manifest.segments.push_back({.id = "s",
                               .first = "a",
                               .last = "b",
                               .count = 7,
                               .first_expiry = 1,
                               .last_expiry = 2,
                               .term_blocks = 3,
                               .entry_blocks = 4});
  manifest.condemned.push_back({.segment = manifest.segments[0], .since = 9, .documents = true});
  const auto read = decode_manifest(3, encode(manifest));
  EXPECT_EQ(encode(read), encode(manifest));
  EXPECT_EQ(read.segments[0].last, "b");
  EXPECT_TRUE(read.condemned[0].documents);
}

}  // namespace
}  // namespace tabella::search
