// What people answer by text. Each text that can be answered leaves a row under the number that it went to;
// what comes from that number is held against those.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manhunt/model.h"
#include "manhunt/searches.h"
#include "store/rows.h"
#include "store/store.h"

namespace tabella::manhunt {

// What was meant by a digit or a word: true accepts, false declines. Nothing: neither.
std::optional<bool> meaning_of(std::string_view text);

// The row of a text that is about to go out. One that goes out again, or in a bundle, is the latest then.
store::Put reply_row_put(const std::string& table, const Attempt& attempt, TimePoint now);

// Thread-safe.
class Replies {
 public:
  Replies(store::Store& store, const Clock& clock, Searches& searches)
      : store_(store), clock_(clock), searches_(searches) {}

  // "1", or "1 K7QD" where several could be meant: without its code the latest is, if that is still open and
  // no other domain's is. What is to be said to that; to what is no answer, nothing, and that it is not clear
  // whose, a few times: it may be a program that answers everything.
  store::Async<std::string> take(std::string number, std::string text);

 private:
  // A text that was answered, or might be.
  struct Candidate {
    std::string search;
    std::string domain;
    std::string language;
    bool active = false;
    std::string summary;  // the beginning of it
    AttemptId attempt;
    std::string code;
  };
  struct Candidates {
    std::vector<Candidate> all;  // newest first
    bool complete = false;       // there are no others
  };
  store::QueryRequest texts_to(const std::string& number) const;
  static std::optional<Candidate> to_candidate(item::ItemView row);
  store::Async<std::optional<Candidate>> with_code(const std::string& number, const std::string& code);
  store::Async<Candidates> candidates_of(const std::string& number);
  store::Async<std::string> answer(const Candidate& candidate, bool accept, const std::string& number);

  store::Store& store_;
  const Clock& clock_;
  Searches& searches_;
};

}  // namespace tabella::manhunt
