// What is said on each channel: the domain's own templates, or ours, in the contact's language. Whatever is
// missing shows as [name], and never stops an attempt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manhunt/domains.h"
#include "manhunt/model.h"

namespace tabella::manhunt {

struct Said {
  std::string subject;  // of an email
  std::string text;
  std::vector<std::string> missing;  // names of values that the metadata does not have
  std::string problem;               // why a template ends early; empty: it does not
  std::string language;              // in which it is said
};

// What it is said about.
struct Occasion {
  const Domain& domain;
  const Search& search;
  const Contact& contact;
  ChannelKind kind = ChannelKind::phone;
  std::string link;     // where it can be answered; empty: nowhere
  std::string code;     // by which a text can be answered
  bool replies = true;  // whether it can be answered by a text at all
};
Said say(const Occasion& occasion);

// The contact's, the search's or the domain's, and otherwise English.
std::string language_of(const Contact& contact, const Search& search, const Domain& domain);

// Of what has none: its first line.
std::string subject_of(std::string_view text);

// Several searches at once, by their own texts.
Said say_bundle(const Occasion& first, const std::vector<std::string>& summaries);

// Of "de-AT": "de".
std::string_view base_language(std::string_view language);

// The language of our own words for somebody who speaks that: the same, or English.
std::string language_of_words(std::string_view language);

// In a language: "Press 1 to accept, 2 to decline.", and what is answered to that.
struct Phrases {
  std::string_view press;
  std::string_view accepted;
  std::string_view declined;
  std::string_view over;          // the search has ended otherwise
  std::string_view no_answer;     // goodbye
  std::string_view verification;  // before a code
  std::string_view test;
  std::string_view accept;  // on a button
  std::string_view decline;
};
const Phrases& phrases(std::string_view language);
// What somebody is told who has answered; `won`: it counts.
std::string_view outcome_phrase(const Phrases& words, bool accept, bool won);

// A search in a line: its summary, or what there is.
std::string summary_of(const Search& search);

// What is wrong with a template; empty: nothing.
std::string problem_with_template(std::string_view text);

}  // namespace tabella::manhunt
