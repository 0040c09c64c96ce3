// The grammar of PartiQL, as much of it as DynamoDB has.
#include <algorithm>
#include <array>
#include <set>

#include "expression/descent.h"
#include "expression/statement.h"
#include "item/number.h"

namespace tabella::expression {
namespace {

using item::Type;

constexpr std::string_view kMalformed = "Statement wasn't well formed, can't be processed: ";
constexpr int kMaxValueDepth = 64;

constexpr auto kKeywords = std::to_array<std::string_view>(
    {"SELECT",  "FROM",   "WHERE", "AND",   "OR",        "NOT",   "IN",     "BETWEEN",
     "IS",      "INSERT", "INTO",  "VALUE", "UPDATE",    "SET",   "REMOVE", "DELETE",
     "ORDER",   "BY",     "ASC",   "DESC",  "RETURNING", "NULL",  "TRUE",   "FALSE",
     "MISSING", "LIKE",   "AS",    "GROUP", "HAVING",    "LIMIT", "UNION",  "JOIN"});

constexpr std::array<std::pair<std::string_view, size_t>, 5> kTests = {{{"ATTRIBUTE_EXISTS", 1},
                                                                        {"ATTRIBUTE_NOT_EXISTS", 1},
                                                                        {"ATTRIBUTE_TYPE", 2},
                                                                        {"BEGINS_WITH", 2},
                                                                        {"CONTAINS", 2}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kTypes = {{{"STRING", "S"},
                                                                                   {"NUMBER", "N"},
                                                                                   {"NUMERIC", "N"},
                                                                                   {"DECIMAL", "N"},
                                                                                   {"BINARY", "B"},
                                                                                   {"BLOB", "B"},
                                                                                   {"BOOL", "BOOL"},
                                                                                   {"BOOLEAN", "BOOL"},
                                                                                   {"LIST", "L"},
                                                                                   {"STRUCT", "M"},
                                                                                   {"TUPLE", "M"},
                                                                                   {"MAP", "M"}}};

std::string to_lower(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

// The text between quotes, doubled ones being one.
std::string unquote(std::string_view quoted) {
  const char quote = quoted.front();
  std::string out;
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    out.push_back(quoted[i]);
    if (quoted[i] == quote) ++i;
  }
  return out;
}

[[noreturn]] void malformed(std::string_view what) { throw Refused{fmt::format("{}{}", kMalformed, what)}; }

class StatementParser final : public Descent {
 public:
  explicit StatementParser(std::string_view text)
      : Descent(tokenize(text, Dialect::statement)), text_(text) {}

  Statement parse() {
    if (std::ranges::any_of(tokens_, [](const Token& t) { return t.kind == Kind::broken || t.text == "#"; }))
      malformed("");
    if (take_word("SELECT"))
      parse_select();
    else if (take_word("INSERT"))
      parse_insert();
    else if (take_word("UPDATE"))
      parse_update();
    else if (take_word("DELETE"))
      parse_delete();
    else if (take_word("FROM"))
      parse_from_first();
    else if (is_word("EXISTS") && at_call())
      parse_exists();
    else
      malformed("Expected data manipulation");
    take_symbol(";");
    if (!at_end()) malformed("Unexpected token after expression");
    return std::move(statement_);
  }

 private:
  // --- statements

  void parse_select() {
    statement_.kind = Statement::Kind::select;
    if (!take_symbol("*")) parse_columns();
    if (!take_word("FROM")) malformed(at_end() ? "Unexpected term" : "Expected 'FROM'");
    parse_source();
    parse_where();
    if (!take_word("ORDER")) return;
    if (!take_word("BY")) malformed("Unexpected keyword");
    do {
      const auto path = parse_path();
      if (path.size() > 1) throw Refused{"ORDER BY takes the names of keys"};
      const bool descending = take_word("DESC");
      if (!descending) take_word("ASC");
      statement_.order_by.push_back({path[0].name, descending});
    } while (take_symbol(","));
  }

  void parse_columns() {
    do {
      if (at_call()) throw Refused{fmt::format("Unexpected path component at {}", place(now()))};
      Column column{.path = parse_path()};
      for (const auto& step : column.path)
        column.name = step.is_index ? fmt::format("{}[{}]", column.name, step.index) : step.name;
      for (const auto& other : statement_.columns)
        if (other.name == column.name)
          throw Refused{fmt::format("Duplicate identifiers in select clause: {}", column.name)};
      statement_.columns.push_back(std::move(column));
    } while (take_symbol(","));
  }

  void parse_insert() {
    statement_.kind = Statement::Kind::insert;
    if (!take_word("INTO")) malformed("Expected 'INTO'");
    const size_t source = at_;
    parse_source();
    if (statement_.index)
      throw Refused{fmt::format(
          "FROM clause may only contain a single table name in data manipulation statements at {}",
          place(tokens_[source]))};
    if (!take_word("VALUE")) malformed("Unexpected token after expression");
    if (!is_symbol("{")) malformed("Expected an item, {'name': value}, after VALUE");
    statement_.item = add_constant(parse_constant("root"));
  }

  void parse_update() {
    statement_.kind = Statement::Kind::update;
    parse_written_table();
    parse_changes();
    parse_where();
    parse_returning();
  }

  // FROM "t" WHERE … SET …
  void parse_from_first() {
    statement_.kind = Statement::Kind::update;
    parse_written_table();
    parse_where();
    parse_changes();
    parse_returning();
  }

  void parse_delete() {
    statement_.kind = Statement::Kind::remove;
    if (!take_word("FROM")) malformed("Expected 'FROM'");
    if (at_end() || is_word("WHERE") || is_symbol(";")) malformed("Expected identifier for simple path");
    parse_written_table();
    parse_where();
    parse_returning();
    if (statement_.returning && (!statement_.returning->all || statement_.returning->fresh))
      throw Refused{fmt::format(
          "Invalid returning clause: RETURNING {} {} *. Only RETURNING ALL OLD * is allowed in DELETE "
          "statements.",
          statement_.returning->all ? "ALL" : "MODIFIED", statement_.returning->fresh ? "NEW" : "OLD")};
  }

  // EXISTS(SELECT * FROM … WHERE …), a condition within a transaction.
  void parse_exists() {
    at_ += 2;
    if (!take_word("SELECT")) malformed("Unexpected term");
    parse_select();
    statement_.kind = Statement::Kind::exists;
    if (!take_symbol(")")) malformed("Unexpected term");
  }

  void parse_written_table() {
    parse_source();
    if (statement_.index) throw Refused{"This operation is not supported on an index"};
  }

  void parse_source() {
    if (at_end()) malformed("Unexpected term");
    std::vector<std::string> parts;
    do {
      parts.push_back(parse_table_part());
    } while (take_symbol("."));
    if (parts.size() > 2) throw Refused{"A path may contain at most 2 components in the FROM clause"};
    for (const auto& part : parts)
      if (part.empty()) throw Refused{"Path component cannot be an empty string"};
    const bool alias =
        is_word("AS") || (now().kind == Kind::identifier && !at_keyword()) || now().kind == Kind::quoted;
    if (alias && statement_.kind == Statement::Kind::insert) malformed("Unexpected token after expression");
    if (alias) throw Refused{"Aliasing is not supported"};
    statement_.table = std::move(parts[0]);
    if (parts.size() > 1) statement_.index = std::move(parts[1]);
  }

  // A bare table name may have dashes and begin with anything a name may.
  std::string parse_table_part() {
    if (now().kind == Kind::quoted) return unquote(tokens_[at_++].text);
    if (now().kind != Kind::identifier || at_keyword()) malformed("Unexpected term");
    return std::string(tokens_[at_++].text);
  }

  void parse_where() {
    if (!take_word("WHERE")) return;
    if (at_end()) malformed("Unexpected term");
    if (is_word("ORDER")) malformed("Unexpected keyword");
    if (is_word("IS") || is_word("LIKE")) malformed("Unexpected operator");
    auto term = parse_or();
    if (is_word("LIKE")) throw Refused{"LIKE is not supported: use begins_with or contains"};
    statement_.where = to_condition(std::move(term));
  }

  void parse_changes() {
    bool any = false;
    while (true) {
      const bool set = take_word("SET");
      if (!set && !take_word("REMOVE")) break;
      any = true;
      do {
        statement_.update.push_back(
            set ? parse_set() : UpdateAction{.kind = UpdateAction::Kind::remove, .path = parse_path()});
      } while (take_symbol(","));
    }
    if (!any) malformed("Expected SET or REMOVE");
  }

  UpdateAction parse_set() {
    UpdateAction action{.kind = UpdateAction::Kind::set, .path = parse_path()};
    if (!take_symbol("=")) malformed("Expected '='");
    if (at_call()) {
      const auto name = to_lower(now().text);
      if (name == "set_add") return parse_set_change(UpdateAction::Kind::add, std::move(action.path));
      if (name == "set_delete") return parse_set_change(UpdateAction::Kind::erase, std::move(action.path));
    }
    in_set_ = true;
    action.value = parse_sum();
    in_set_ = false;
    return action;
  }

  // SET a = set_add(a, <<…>>)
  UpdateAction parse_set_change(UpdateAction::Kind kind, Path path) {
    const auto function = kind == UpdateAction::Kind::add ? "SET_ADD" : "SET_DELETE";
    const auto at = place(now());
    at_ += 2;
    const auto first = place(now());
    std::vector<Operand> operands;
    if (!is_symbol(")")) parse_operands(operands, ")");
    if (operands.size() != 2)
      throw Refused{fmt::format("{} must have exactly two arguments at {}", function, at)};
    if (operands[0].kind != Operand::Kind::path || operands[0].path != path)
      throw Refused{
          fmt::format("The first argument to {} must equal the assignment value at {}", function, at)};
    if (operands[1].kind != Operand::Kind::value || !may_be_set())
      throw Refused{
          fmt::format("The second argument to {} must be a value with type SET at {}", function, first)};
    return {.kind = kind, .path = std::move(path), .value = std::move(operands[1])};
  }

  // Of the constant that was read last. What a parameter is, only its value shows.
  bool may_be_set() const {
    const auto& constant = statement_.constants.back();
    if (constant.kind == Constant::Kind::parameter) return true;
    return constant.kind == Constant::Kind::literal && item::is_set(item::ValueView(constant.flat).type());
  }

  void parse_returning() {
    if (!take_word("RETURNING")) return;
    Statement::Returning returning;
    returning.all = take_word("ALL");
    if (!returning.all && !take_word("MODIFIED")) malformed("Expected ALL or MODIFIED after RETURNING");
    returning.fresh = take_word("NEW");
    if (!returning.fresh && !take_word("OLD")) malformed("Expected OLD or NEW in RETURNING");
    if (!take_symbol("*")) malformed("Expected * at the end of RETURNING");
    statement_.returning = returning;
  }

  // --- terms

  bool at_keyword() const {
    return now().kind == Kind::identifier &&
           std::ranges::any_of(kKeywords, [&](auto word) { return same_word(now().text, word); });
  }

  bool at_value() const {
    if (now().kind == Kind::string || now().kind == Kind::number) return true;
    if (is_word("TRUE") || is_word("FALSE") || is_word("NULL")) return true;
    return now().kind == Kind::symbol && (now().text == "?" || now().text == "-" || now().text == "[" ||
                                          now().text == "{" || now().text == "<<");
  }

  Term parse_primary() override {
    const Deeper deeper(depth_);
    if (at_end())
      malformed(expects_right_side() ? "Missing right-hand side expression of infix operator"
                                     : "Unexpected term");
    if (take_symbol("(")) {
      Term inner = parse_or();
      if (!take_symbol(")")) malformed("Unexpected term");
      return inner;
    }
    if (at_value()) return {.operand = value_operand(parse_constant("root"))};
    if (at_call() && !at_keyword()) return parse_call();
    return {.operand = Operand{.kind = Operand::Kind::path, .path = parse_path()}};
  }

  bool expects_right_side() const {
    if (at_ == 0) return false;
    const auto& before = tokens_[at_ - 1];
    return before.kind == Kind::identifier && (same_word(before.text, "AND") || same_word(before.text, "OR"));
  }

  Term parse_call() {
    const auto name = now();
    const auto lower = to_lower(name.text);
    at_ += 2;
    Operand function{.kind = Operand::Kind::function, .text = lower};
    if (!take_symbol(")")) parse_operands(function.arguments, ")");
    if (lower == (in_set_ ? "list_append" : "size")) return {.operand = std::move(function)};
    const auto test = std::ranges::find_if(kTests, [&](const auto& t) { return same_word(lower, t.first); });
    if (test == kTests.end() || in_set_)
      throw Refused{fmt::format("Unrecognized function: {} at {}", lower, place(name))};
    Term term{.condition = Condition{.kind = Condition::Kind::function,
                                     .function = lower,
                                     .operands = std::move(function.arguments)}};
    compare_with_boolean(term);
    return term;
  }

  // begins_with(a, 'x') = true
  void compare_with_boolean(Term& term) {
    if (!is_symbol("=") || next().kind != Kind::identifier) return;
    const bool yes = same_word(next().text, "TRUE");
    if (!yes && !same_word(next().text, "FALSE")) return;
    at_ += 2;
    if (!yes) term = negated(std::move(term));
  }

  static Term negated(Term term) {
    Condition negation{.kind = Condition::Kind::negation};
    negation.children.push_back(std::move(*term.condition));
    return {.condition = std::move(negation)};
  }

  // a IS [NOT] MISSING, a IS [NOT] NULL, a IS STRING, a IN […]
  bool parse_other_test(Term& left) override {
    if (is_word("IN") && next().kind == Kind::symbol && next().text == "[") {
      at_ += 2;
      count_operator();
      Condition c{.kind = Condition::Kind::in};
      c.operands.push_back(to_operand(std::move(left), at_));
      parse_operands(c.operands, "]");
      check_in(c);
      left = leaf(std::move(c));
      return true;
    }
    if (!take_word("IS")) return false;
    const auto operand = to_operand(std::move(left), at_);
    const bool negative = take_word("NOT");
    const bool missing = take_word("MISSING");
    if (missing)
      left = test(negative ? "attribute_exists" : "attribute_not_exists", operand, {});
    else
      left = test("attribute_type", operand, take_type_name());
    if (negative && !missing) left = negated(std::move(left));
    return true;
  }

  std::string_view take_type_name() {
    if (take_word("NULL")) return "NULL";
    const auto at = std::ranges::find_if(kTypes, [&](const auto& t) { return is_word(t.first); });
    if (at == kTypes.end()) malformed("Expected type name");
    ++at_;
    return at->second;
  }

  Term test(std::string function, const Operand& operand, std::string_view type) {
    Condition c{.kind = Condition::Kind::function, .function = std::move(function), .operands = {operand}};
    if (!type.empty()) {
      Constant constant;
      item::append_scalar(constant.flat, Type::S, type);
      c.operands.push_back(value_operand(std::move(constant)));
    }
    return {.condition = std::move(c)};
  }

  void check_operand(const Operand&) override {}

  Condition to_condition(Term term) override {
    if (!term.condition) malformed("Unexpected term");
    return std::move(*term.condition);
  }

  Step parse_name() override {
    if (now().kind == Kind::quoted) {
      auto name = unquote(tokens_[at_++].text);
      if (name.empty()) throw Refused{"Path component cannot be an empty string"};
      return {.name = std::move(name)};
    }
    if (is_word("LIKE") || is_word("IS")) malformed("Unexpected operator");
    const bool after_dot = at_ > 0 && tokens_[at_ - 1].text == ".";
    if (now().kind != Kind::identifier || (at_keyword() && !after_dot))
      malformed(after_dot      ? "Invalid path dot component"
                : at_keyword() ? "Unexpected keyword"
                               : "Unexpected term");
    return {.name = std::string(tokens_[at_++].text)};
  }

  // --- values

  size_t add_constant(Constant constant) {
    statement_.constants.push_back(std::move(constant));
    return statement_.constants.size() - 1;
  }

  Operand value_operand(Constant constant) {
    return {.kind = Operand::Kind::value, .text = fmt::format(":{}", add_constant(std::move(constant)))};
  }

  // `where` is the value's place in the one it is part of, for messages.
  Constant parse_constant(const std::string& where) {
    const Deeper deeper(value_depth_, kMaxValueDepth);
    if (take_symbol("?")) return {.kind = Constant::Kind::parameter, .parameter = statement_.parameters++};
    if (take_symbol("[")) return folded(parse_list(where));
    if (take_symbol("{")) return folded(parse_map(where));
    if (take_symbol("<<")) return parse_set_literal(where);
    Constant constant;
    if (now().kind == Kind::string)
      item::append_scalar(constant.flat, Type::S, unquote(tokens_[at_++].text));
    else if (take_word("NULL"))
      item::append_null(constant.flat);
    else if (is_word("TRUE") || is_word("FALSE"))
      item::append_boolean(constant.flat, same_word(tokens_[at_++].text, "TRUE"));
    else
      item::append_scalar(constant.flat, Type::N, parse_number_literal(where));
    return constant;
  }

  std::string parse_number_literal(const std::string& where) {
    const bool negative = take_symbol("-");
    if (at_call())
      throw Refused{fmt::format("Unsupported data type: {} under key {} at {}", to_lower(now().text), where,
                                place(now()))};
    if (now().kind != Kind::number)
      malformed(is_word("LIKE") || is_word("IS") ? "Unexpected operator"
                : at_end()                       ? "Unexpected term"
                                                 : "Unexpected keyword");
    auto number = item::parse_number(fmt::format("{}{}", negative ? "-" : "", tokens_[at_++].text));
    if (!number && number.error().message.starts_with("The parameter cannot be converted")) malformed("");
    if (!number) throw Refused{fmt::format("{} under {}", number.error().message, where)};
    return std::move(*number);
  }

  Constant parse_list(const std::string& where) {
    Constant list{.kind = Constant::Kind::list};
    if (take_symbol("]")) return list;
    do {
      list.elements.push_back(parse_constant(fmt::format("{}[{}]", where, list.elements.size())));
    } while (take_symbol(","));
    if (!take_symbol("]")) malformed("Unexpected term");
    return list;
  }

  Constant parse_map(const std::string& where) {
    Constant map{.kind = Constant::Kind::map};
    if (take_symbol("}")) return map;
    do {
      if (now().kind != Kind::string && now().kind != Kind::quoted) malformed("Expected a name in quotes");
      auto name = unquote(tokens_[at_++].text);
      if (std::ranges::find(map.names, name) != map.names.end())
        throw Refused{fmt::format("Duplicate attribute name: {}", name)};
      if (!take_symbol(":")) malformed("Expected ':' after a name");
      map.elements.push_back(parse_constant(fmt::format("{}.{}", where, name)));
      map.names.push_back(std::move(name));
    } while (take_symbol(","));
    if (!take_symbol("}")) malformed("Unexpected term");
    return map;
  }

  Constant parse_set_literal(const std::string& where) {
    if (is_symbol(">>")) throw Refused{"Empty bags are not supported"};
    std::vector<std::string> contents;
    std::optional<Type> type;
    do {
      const auto element = parse_constant(where);
      if (element.kind != Constant::Kind::literal) throw Refused{"Unsupported data type in Bag"};
      const item::ValueView value(element.flat);
      if (value.type() != Type::S && value.type() != Type::N) throw Refused{"Unsupported data type in Bag"};
      if (type && *type != value.type())
        throw Refused{"DynamoDB only supports either numbers or strings in bags"};
      type = value.type();
      contents.emplace_back(value.content());
    } while (take_symbol(","));
    if (!take_symbol(">>")) malformed("Unexpected term");
    check_distinct(contents, *type);
    Constant constant;
    item::Value::set(*type == Type::S ? Type::SS : Type::NS, std::move(contents)).append_to(constant.flat);
    return constant;
  }

  static void check_distinct(const std::vector<std::string>& contents, Type type) {
    const std::set<std::string_view> distinct(contents.begin(), contents.end());
    if (distinct.size() == contents.size()) return;
    if (type == Type::N) throw Refused{"Input collection contains duplicates"};
    throw Refused{
        fmt::format("One or more parameter values were invalid: Input collection [{}] contains duplicates.",
                    fmt::join(contents, ", "))};
  }

  // What has no parameter in it is put together once.
  static Constant folded(Constant composite);

  // "line:column:length", as AWS names places.
  std::string place(const Token& token) const {
    const auto before = text_.substr(0, static_cast<size_t>(token.text.data() - text_.data()));
    const auto line = std::ranges::count(before, '\n') + 1;
    const auto newline = before.rfind('\n');
    const auto column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    return fmt::format("{}:{}:{}", line, column, token.text.size());
  }

  std::string_view text_;
  Statement statement_;
  int value_depth_ = 0;
  bool in_set_ = false;  // on the right of SET … =
};

Constant StatementParser::folded(Constant composite) {
  const bool literal = std::ranges::all_of(
      composite.elements, [](const Constant& c) { return c.kind == Constant::Kind::literal; });
  if (!literal) return composite;
  Constant constant;
  append_constant(constant.flat, composite, {});
  return constant;
}

}  // namespace

Checked<Statement> parse_statement(std::string_view text) {
  try {
    return StatementParser(text).parse();
  } catch (const SyntaxError&) {
    return invalid(fmt::format("{}Unexpected term", kMalformed));
  } catch (Refused& refused) {
    return invalid(std::move(refused.message));
  } catch (const TooDeep&) {
    return invalid(fmt::format("{}brackets or values stand too deep in each other", kMalformed));
  }
}

}  // namespace tabella::expression
