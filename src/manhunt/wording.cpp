#include "manhunt/wording.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"
#include "base/utf8.h"
#include "handlebars/template.h"

namespace tabella::manhunt {
namespace {

constexpr size_t kMostText = 4'000;
constexpr size_t kMostSubject = 300;
constexpr size_t kMostRenderingSteps =
    20'000;  // of a template; a search has many attempts, and they share a thread
constexpr size_t kMostSummaryOfText = 1'000;
constexpr std::string_view kReserved[] = {"contact", "search", "domain", "link", "code"};

// Ours, in one language.
struct OwnWords {
  std::string_view language;
  std::string_view asked_for;  // where there is no summary
  std::string_view reply;      // of a text
  std::string_view answer_at;  // before a link
  std::string_view several;    // before a number
  Phrases phrases;
};

constexpr std::array<OwnWords, 5> kWords{{
    {"en",
     "You are needed.",
     "Reply 1 to accept, 2 to decline",
     "Answer here:",
     "searches for you:",
     {"Press 1 to accept, 2 to decline.", "Thank you. You have accepted.",
      "You have declined. Somebody else will be asked.", "This has been settled already.",
      "No answer was given. Goodbye.", "Your code is", "This is a test.", "Accept", "Decline"}},
    {"de",
     "Sie werden gebraucht.",
     "Antworten Sie 1 zum Annehmen, 2 zum Ablehnen",
     "Hier antworten:",
     "Suchen nach Ihnen:",
     {"Drücken Sie 1 zum Annehmen, 2 zum Ablehnen.", "Danke. Sie haben angenommen.",
      "Sie haben abgelehnt. Jemand anderes wird gefragt.", "Das ist bereits erledigt.",
      "Keine Antwort. Auf Wiederhören.", "Ihr Code ist", "Dies ist ein Test.", "Annehmen", "Ablehnen"}},
    {"es",
     "Se le necesita.",
     "Responda 1 para aceptar, 2 para rechazar",
     "Responda aquí:",
     "búsquedas para usted:",
     {"Pulse 1 para aceptar, 2 para rechazar.", "Gracias. Ha aceptado.",
      "Ha rechazado. Se preguntará a otra persona.", "Esto ya está resuelto.", "No hubo respuesta. Adiós.",
      "Su código es", "Esto es una prueba.", "Aceptar", "Rechazar"}},
    {"fr",
     "On a besoin de vous.",
     "Répondez 1 pour accepter, 2 pour refuser",
     "Répondez ici :",
     "recherches pour vous :",
     {"Appuyez sur 1 pour accepter, sur 2 pour refuser.", "Merci. Vous avez accepté.",
      "Vous avez refusé. Quelqu'un d'autre sera appelé.", "C'est déjà réglé.", "Pas de réponse. Au revoir.",
      "Votre code est", "Ceci est un test.", "Accepter", "Refuser"}},
    {"it",
     "C'è bisogno di lei.",
     "Risponda 1 per accettare, 2 per rifiutare",
     "Risponda qui:",
     "ricerche per lei:",
     {"Prema 1 per accettare, 2 per rifiutare.", "Grazie. Ha accettato.",
      "Ha rifiutato. Sarà cercato qualcun altro.", "È già stato risolto.", "Nessuna risposta. Arrivederci.",
      "Il suo codice è", "Questa è una prova.", "Accettare", "Rifiutare"}},
}};

const OwnWords& words_of(std::string_view language) {
  const auto* const found = std::ranges::find(kWords, lower(base_language(language)), &OwnWords::language);
  return found == kWords.end() ? kWords.front() : *found;
}

// The domain's own template, and the language it is in. Nothing: it has none.
std::optional<std::pair<const Wording*, std::string>> own_wording(const Domain& domain, ChannelKind kind,
                                                                  std::string_view language) {
  const auto base = base_language(language);
  for (const auto& each : {language, base, std::string_view(domain.language), std::string_view("en")}) {
    const auto found = domain.wordings.find(fmt::format("{}#{}", name_of(kind), each));
    if (found != domain.wordings.end())
      return std::pair(&found->second, std::string(each == base ? language : each));
  }
  return std::nullopt;
}

std::string data_of(const Occasion& occasion) {
  std::string json;
  {
    JsonObjectWriter data(json);
    JsonDocument document;
    const auto metadata = document.parse(occasion.search.metadata);
    if (metadata && metadata->is_object())
      for (JsonElements each(*metadata); each.next();)
        if (std::ranges::find(kReserved, each.key()) == std::end(kReserved))
          append_json(data.key(each.key()), each.value());
    JsonObjectWriter(data.key("contact")).string("name", occasion.contact.name);
    {
      JsonObjectWriter search(data.key("search"));
      search.string("id", occasion.search.id);
      search.string("created", time_text(time_at(occasion.search.created)));
    }
    {
      JsonObjectWriter domain(data.key("domain"));
      domain.string("name", occasion.domain.name);
      domain.string("title", occasion.domain.title);
    }
    if (!occasion.link.empty()) data.string("link", occasion.link);
    if (!occasion.code.empty()) data.string("code", occasion.code);
  }
  return json;
}

std::string render(const std::string& text, JsonValue data, size_t most, Said& said) {
  const auto parsed = handlebars::Template::parse(text);
  if (!parsed) {
    said.problem = parsed.error().message;
    return {};
  }
  auto rendered = parsed->render_with_gaps(data, most, kMostRenderingSteps);
  for (auto& name : rendered.missing)
    if (std::ranges::find(said.missing, name) == said.missing.end()) said.missing.push_back(std::move(name));
  if (!rendered.problem.empty()) said.problem = std::move(rendered.problem);
  return std::move(rendered.text);
}

// By our own words, where the domain has no template.
void say_as_usual(const Occasion& occasion, std::string_view summary, Said& said) {
  const auto& words = words_of(said.language);
  said.language = language_of_words(said.language);
  const auto& title = occasion.domain.title;
  // What it can be answered by stands behind the summary, and must not be cut off.
  if (occasion.kind == ChannelKind::text) summary = utf8_front(summary, kMostSummaryOfText);
  const auto what = fmt::format("{}{}{}", title, title.empty() ? "" : ": ", summary);
  said.subject = printable(utf8_front(what, kMostSubject));
  said.text = what;
  switch (occasion.kind) {
    case ChannelKind::phone:
    case ChannelKind::webhook: break;
    case ChannelKind::text:
      said.text += '\n';
      if (occasion.replies)
        said.text += fmt::format("{}{}. ", words.reply, occasion.code.empty() ? "" : ", " + occasion.code);
      said.text += occasion.link;
      break;
    case ChannelKind::email: said.text += fmt::format("\n\n{} {}\n", words.answer_at, occasion.link); break;
  }
}

}  // namespace

std::string language_of(const Contact& contact, const Search& search, const Domain& domain) {
  for (const auto* language : {&contact.language, &search.language, &domain.language})
    if (!language->empty()) return *language;
  return "en";
}

std::string_view base_language(std::string_view language) { return language.substr(0, language.find('-')); }

std::string subject_of(std::string_view text) {
  return printable(utf8_front(text.substr(0, text.find('\n')), kMostSubject));
}

std::string language_of_words(std::string_view language) {
  const auto ours = words_of(language).language;
  return std::string(lower(base_language(language)) == ours ? language : ours);
}

const Phrases& phrases(std::string_view language) { return words_of(language).phrases; }

std::string_view outcome_phrase(const Phrases& words, bool accept, bool won) {
  return !won ? words.over : accept ? words.accepted : words.declined;
}

std::string summary_of(const Search& search) {
  JsonDocument document;
  const auto metadata = document.parse(search.metadata);
  if (metadata && metadata->is_object())
    for (const auto* name : {"summary", "title", "message"})
      if (const auto text = metadata->text(name); !text.empty())
        return std::string(utf8_front(text, kMostText / 2));
  return {};
}

std::string problem_with_template(std::string_view text) {
  if (text.size() > kMostText) return fmt::format("at most {} bytes", kMostText);
  const auto parsed = handlebars::Template::parse(text);
  return parsed ? "" : parsed.error().message;
}

Said say(const Occasion& occasion) {
  Said said{.language = language_of(occasion.contact, occasion.search, occasion.domain)};
  const auto asked_in = said.language;
  if (const auto own = own_wording(occasion.domain, occasion.kind, said.language)) {
    const auto& [wording, language] = *own;
    const auto json = data_of(occasion);
    JsonDocument document;
    const auto data = document.parse(json);
    said.subject = printable(render(wording->subject, *data, kMostSubject, said));
    said.text = render(wording->text, *data, kMostText, said);
    said.language = language;
  }
  if (said.text.empty()) {
    said.language = asked_in;
    auto summary = summary_of(occasion.search);
    if (summary.empty()) summary = words_of(said.language).asked_for;
    say_as_usual(occasion, summary, said);
  }
  if (said.subject.empty()) said.subject = subject_of(said.text);
  said.text = to_valid_utf8(said.text);
  return said;
}

Said say_bundle(const Occasion& first, const std::vector<std::string>& summaries) {
  Said said{.language = language_of(first.contact, first.search, first.domain)};
  const auto& words = words_of(said.language);
  auto summary = fmt::format("{} {}", summaries.size(), words.several);
  for (const auto& each : summaries) {
    const auto line = each.empty() ? std::string(words.asked_for) : each;
    if (summary.size() + line.size() > kMostText / 2) {
      summary += "\n…";
      break;
    }
    summary += "\n- " + line;
  }
  say_as_usual(first, summary, said);
  said.subject = fmt::format("{} {}", summaries.size(), words.several);
  return said;
}

}  // namespace tabella::manhunt
