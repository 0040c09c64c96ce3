#include <algorithm>

#include <fmt/format.h>

#include "contract/contract.h"

namespace tabella::contract {
namespace {

using store::CapacityDetail;
using store::ErrorCode;

class Statements : public StoreContract {
 protected:
  void fill() {
    create(
        "music", 'S',
        {index("by_year", {"year"}, {"sk"}), index("thin", {"label"}, {}, store::ProjectionType::keys_only)},
        {}, {{"year", item::Type::N}, {"label", item::Type::S}});
    for (
        const char* item :
        {R"({"label":{"S":"l"},"pk":{"S":"acme"},"sk":{"S":"blue"},"tags":{"L":[{"S":"a"},{"S":"b"}]},"year":{"N":"2015"}})",
         R"({"info":{"M":{"rank":{"N":"3"}}},"pk":{"S":"acme"},"sk":{"S":"green"},"year":{"N":"2016"}})",
         R"({"null":{"NULL":true},"pk":{"S":"acme"},"sk":{"S":"red"},"year":{"N":"2015"}})",
         R"({"pk":{"S":"zeta"},"set":{"SS":["x","y"]},"sk":{"S":"blue"},"year":{"N":"2020"}})"})
      EXPECT_EQ(put("music", item), "ok");
  }

  // The sort keys of what a SELECT finds.
  std::string found(const std::string& where, const char* parameters = nullptr) {
    const auto lines = execute("SELECT sk FROM music WHERE " + where, parameters);
    std::string keys;
    for (size_t at = 0; (at = lines.find("{\"S\":\"", at)) != std::string::npos; at += 6)
      keys += lines.substr(at + 6, lines.find('"', at + 6) - at - 6) + " ";
    return keys.empty() ? lines : keys;
  }

  std::vector<std::string> batch(std::vector<std::string> texts) {
    store::BatchExecuteStatementRequest request;
    for (auto& text : texts) request.statements.push_back({.text = std::move(text)});
    const auto result = run(store().batch_execute_statement(std::move(request)));
    if (!result) return {result.error().message};
    std::vector<std::string> answers;
    for (const auto& r : result->responses)
      answers.push_back(r.error ? r.error->message : r.item ? json_of(*r.item) : "none");
    return answers;
  }

  store::Result<store::ExecuteTransactionResult> transaction(
      std::vector<store::Statement> statements, std::optional<std::string> token = std::nullopt) {
    return run(store().execute_transaction({.statements = std::move(statements), .token = std::move(token)}));
  }
};

TEST_P(Statements, SelectByKeyByPartitionAndByAnythingElse) {
  fill();
  EXPECT_EQ(execute(R"(SELECT * FROM "music" WHERE pk = 'zeta' AND sk = 'blue')"),
            R"({"pk":{"S":"zeta"},"set":{"SS":["x","y"]},"sk":{"S":"blue"},"year":{"N":"2020"}})"
            "\n");
  EXPECT_EQ(found("pk = 'acme'"), "blue green red ");
  EXPECT_EQ(found("pk = ? AND sk > ?", R"([{"S":"acme"},{"S":"blue"}])"), "green red ");
  EXPECT_EQ(found("pk = 'acme' AND sk BETWEEN 'c' AND 'h'"), "green ");
  EXPECT_EQ(found("pk = 'acme' AND begins_with(\"sk\", 'r')"), "red ");
  EXPECT_EQ(found("pk = 'acme' AND year <> 2015"), "green ");
  EXPECT_EQ(found("pk IN ['zeta', 'acme', 'none'] AND sk = 'blue'"), "blue blue ");
  EXPECT_EQ(found("year = 2020 OR sk = 'red' AND NOT pk = 'zeta'").size(), std::string("blue red ").size());
  EXPECT_EQ(found("pk = 'acme' AND info.rank >= 3"), "green ");
  EXPECT_EQ(found("pk = 'acme' AND tags[1] = 'b'"), "blue ");
  EXPECT_EQ(found("pk = 'acme' AND tags IS MISSING"), "green red ");
  EXPECT_EQ(found("pk = 'acme' AND tags IS NOT MISSING"), "blue ");
  EXPECT_EQ(found("pk = 'acme' AND \"null\" IS NULL"), "red ");
  EXPECT_EQ(found("pk = 'acme' AND size(tags) = 2"), "blue ");
  EXPECT_EQ(found("pk = 'acme' AND contains(tags, 'a')"), "blue ");
  EXPECT_EQ(found("pk = 'acme' AND attribute_type(info, 'M')"), "green ");
  EXPECT_EQ(found("pk = 'acme' AND year IN (2016, 2017)"), "green ");
  EXPECT_EQ(found("pk = 'nobody'"), "");
}

TEST_P(Statements, SelectColumnsByTheirLastName) {
  fill();
  EXPECT_EQ(execute("SELECT info.rank, sk FROM music WHERE pk='acme' AND sk='green'"),
            "{\"rank\":{\"N\":\"3\"},\"sk\":{\"S\":\"green\"}}\n");
  EXPECT_EQ(execute("SELECT tags[1], nothing FROM music WHERE pk='acme' AND sk='blue'"),
            "{\"tags[1]\":{\"S\":\"b\"}}\n");
}

TEST_P(Statements, SelectFromIndexes) {
  fill();
  EXPECT_EQ(execute(R"(SELECT sk FROM "music"."by_year" WHERE year = 2015)"),
            "{\"sk\":{\"S\":\"blue\"}}\n{\"sk\":{\"S\":\"red\"}}\n");
  EXPECT_EQ(execute(R"(SELECT sk FROM "music"."by_year" WHERE year = 2015 ORDER BY sk DESC)"),
            "{\"sk\":{\"S\":\"red\"}}\n{\"sk\":{\"S\":\"blue\"}}\n");
  EXPECT_EQ(execute(R"(SELECT * FROM "music"."nothing" WHERE year = 2015)"),
            "The table does not have the specified index");
  EXPECT_EQ(execute(R"(SELECT tags FROM "music"."thin" WHERE label = 'l')"),
            "One or more parameter values were invalid: Global secondary index thin does not project [tags]");
}

TEST_P(Statements, OrderByTheirKeys) {
  fill();
  const auto all = [&](const std::string& order, std::optional<int64_t> limit) {
    return execute("SELECT pk, sk FROM music WHERE pk IN ['zeta','acme'] ORDER BY " + order, nullptr, limit);
  };
  const auto row = [](std::string_view pk, std::string_view sk) {
    return fmt::format("{{\"pk\":{{\"S\":\"{}\"}},\"sk\":{{\"S\":\"{}\"}}}}\n", pk, sk);
  };
  for (const std::optional<int64_t> limit :
       {std::optional<int64_t>(), std::optional<int64_t>(1), std::optional<int64_t>(3)}) {
    EXPECT_EQ(all("pk", limit),
              row("acme", "blue") + row("acme", "green") + row("acme", "red") + row("zeta", "blue"));
    EXPECT_EQ(all("pk DESC, sk ASC", limit),
              row("zeta", "blue") + row("acme", "blue") + row("acme", "green") + row("acme", "red"));
    EXPECT_EQ(all("pk ASC, sk DESC", limit),
              row("acme", "red") + row("acme", "green") + row("acme", "blue") + row("zeta", "blue"));
  }
  EXPECT_EQ(all("year", {}), "Variable reference year in ORDER BY clause must be part of the primary key");
}

TEST_P(Statements, ReadOnlyThePartitionsThatOrNames) {
  fill();
  for (int i = 0; i < 200; ++i)
    put("music", fmt::format(R"({{"pk":{{"S":"other-{}"}},"sk":{{"S":"x"}},"filler":{{"S":"{}"}}}})", i,
                             std::string(4000, 'x')));
  const auto units = [&](const std::string& where) {
    store::ExecuteStatementRequest request{.statement = {.text = "SELECT * FROM music WHERE " + where},
                                           .capacity = CapacityDetail::total};
    return run(store().execute_statement(std::move(request)))->capacity->total();
  };
  EXPECT_LE(units("pk = 'acme' OR pk = 'zeta'"), 1);
  EXPECT_EQ(found("pk = 'acme' AND sk = 'red' OR pk = 'zeta'").size(), std::string("red blue ").size());
  EXPECT_EQ(found("pk = 'acme' AND sk < 'c' OR pk = 'acme' AND sk > 'h'"), "blue red ");
  EXPECT_EQ(found("pk = 'acme' AND year = 1 OR pk = 'acme' AND sk = 'red'"),
            "Overlapping conditions with range keys are not supported in where clause");
  EXPECT_EQ(found("pk = 'acme' AND sk <> 'red' OR pk = 'acme' AND sk = 'red'"), "blue green red ");
}

TEST_P(Statements, EndAPageAtAMegabyteOverAllPartitions) {
  create("wide", 'S');
  std::string partitions;
  for (int i = 0; i < 20; ++i) {
    partitions += fmt::format("{}'p{}'", i > 0 ? "," : "", i);
    put("wide", fmt::format(R"({{"pk":{{"S":"p{}"}},"sk":{{"S":"x"}},"body":{{"S":"{}"}}}})", i,
                            std::string(300'000, 'x')));
  }
  const auto text = fmt::format("SELECT pk FROM wide WHERE pk IN [{}]", partitions);
  const auto page = run(store().execute_statement({.statement = {.text = text}}));
  ASSERT_TRUE(page);
  EXPECT_LE(page->items.size(), 4u);
  EXPECT_TRUE(page->next_token);
  const auto all = execute(text);
  EXPECT_EQ(std::ranges::count(all, '\n'), 20);
}

TEST_P(Statements, GoOnFromTheirTokens) {
  fill();
  for (int64_t limit = 1; limit <= 5; ++limit) {
    EXPECT_EQ(execute("SELECT sk FROM music WHERE pk = 'acme' ORDER BY sk DESC", nullptr, limit),
              "{\"sk\":{\"S\":\"red\"}}\n{\"sk\":{\"S\":\"green\"}}\n{\"sk\":{\"S\":\"blue\"}}\n");
    EXPECT_EQ(execute("SELECT * FROM music WHERE pk IN ['acme','zeta']", nullptr, limit),
              execute("SELECT * FROM music WHERE pk IN ['acme','zeta']"));
    EXPECT_EQ(execute("SELECT * FROM music", nullptr, limit), execute("SELECT * FROM music"));
  }
  store::ExecuteStatementRequest request{.statement = {.text = "SELECT * FROM music"}, .limit = 1};
  request.next_token = run(store().execute_statement(request))->next_token;
  request.statement.text = "SELECT sk FROM music";
  EXPECT_EQ(outcome(run(store().execute_statement(request))), "NextToken does not match request");
  request.next_token = "bm9uc2Vuc2UgaW4gYmFzZTY0";
  EXPECT_EQ(outcome(run(store().execute_statement(request))), "Invalid NextToken");
}

TEST_P(Statements, InsertWhatIsNotThere) {
  create("items");
  EXPECT_EQ(execute(R"(INSERT INTO "items" VALUE {'pk':'a', 'n':-1.50e2, 't':true, 'z':null, 'l':[1,'x',?],
                      'm':{'k':?}, 'ss':<<'p','q'>>, 'ns':<<1,2>>, 'q':'it''s'})",
                    R"([{"S":"first"},{"B":"AQI="}])"),
            "");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"),
            R"({"l":{"L":[{"N":"1"},{"S":"x"},{"S":"first"}]},"m":{"M":{"k":{"B":"AQI="}}},)"
            R"("n":{"N":"-150"},"ns":{"NS":["1","2"]},"pk":{"S":"a"},"q":{"S":"it's"},)"
            R"("ss":{"SS":["p","q"]},"t":{"BOOL":true},"z":{"NULL":true}})");
  EXPECT_EQ(execute("INSERT INTO items VALUE {'pk':'a'}"), "Duplicate primary key exists in table");
  EXPECT_EQ(execute("INSERT INTO items VALUE {'pk':'e', '':1}"),
            "One or more parameter values were invalid: Empty attribute name");
  EXPECT_EQ(execute("INSERT INTO items VALUE {'pk':'e', 's':<<'x','x'>>}"),
            "One or more parameter values were invalid: Input collection [x, x] contains duplicates.");
  EXPECT_EQ(execute("INSERT INTO items VALUE {'pk':'e', 'l':[1, 1e200]}"),
            "Number overflow. Attempting to store a number with magnitude larger than supported range under "
            "root.l[1]");
  EXPECT_EQ(execute("INSERT INTO items VALUE {'x':'a'}"),
            "One or more parameter values were invalid: Missing the key pk in the item");
}

TEST_P(Statements, UpdateWhatIsThere) {
  create("items");
  put("items",
      R"({"gone":{"S":"x"},"l":{"L":[{"N":"1"}]},"n":{"N":"1"},"pk":{"S":"a"},"s":{"NS":["1","2"]}})");
  EXPECT_EQ(
      execute("UPDATE items SET n = n + 5, l = list_append(l, [2]) SET s = set_add(s, <<3>>) REMOVE gone "
              "WHERE pk = 'a' RETURNING ALL NEW *"),
      R"({"l":{"L":[{"N":"1"},{"N":"2"}]},"n":{"N":"6"},"pk":{"S":"a"},"s":{"NS":["1","2","3"]}})"
      "\n");
  EXPECT_EQ(
      execute(
          "UPDATE items SET s = set_delete(s, <<1,3>>) WHERE pk = 'a' AND n = 6 RETURNING MODIFIED OLD *"),
      "{\"s\":{\"NS\":[\"1\",\"2\",\"3\"]}}\n");
  EXPECT_EQ(execute("UPDATE items SET n = 0 WHERE pk = 'a' AND n = 7"), "The conditional request failed");
  EXPECT_EQ(execute("UPDATE items SET n = 0 WHERE pk = 'nobody'"), "The conditional request failed");
  EXPECT_EQ(get("items", R"({"pk":{"S":"nobody"}})"), "none");
  EXPECT_EQ(execute("UPDATE items SET n = 0 WHERE n = 6"),
            "Where clause does not contain a mandatory equality on all key attributes");
  EXPECT_EQ(execute("FROM items WHERE pk = 'a' SET n = 9 RETURNING MODIFIED NEW *"),
            "{\"n\":{\"N\":\"9\"}}\n");
}

TEST_P(Statements, DeleteWhatIsThere) {
  create("items");
  put("items", R"({"n":{"N":"1"},"pk":{"S":"a"}})");
  EXPECT_EQ(execute("DELETE FROM items WHERE pk = 'a' AND n = 2"), "The conditional request failed");
  EXPECT_EQ(execute("DELETE FROM items WHERE pk = 'none' AND n = 2 RETURNING ALL OLD *"), "");
  EXPECT_EQ(execute("DELETE FROM items WHERE pk = 'a' AND n = 1 RETURNING ALL OLD *"),
            "{\"n\":{\"N\":\"1\"},\"pk\":{\"S\":\"a\"}}\n");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), "none");
}

TEST_P(Statements, SayWhatIsWrongWithThem) {
  fill();
  const std::string e = "Statement wasn't well formed, can't be processed: ";
  EXPECT_EQ(execute("SELECTT * FROM music"), e + "Expected data manipulation");
  EXPECT_EQ(execute("SELECT * FROM"), e + "Unexpected term");
  EXPECT_EQ(execute("SELECT * FROM music WHERE"), e + "Unexpected term");
  EXPECT_EQ(execute("SELECT * FROM music WHERE a = 1 AND"),
            e + "Missing right-hand side expression of infix operator");
  EXPECT_EQ(execute("SELECT * FROM music WHERE a = 1 b"), e + "Unexpected token after expression");
  EXPECT_EQ(execute("SELECT * FROM music WHERE a = 'x"), e);
  EXPECT_EQ(execute("SELECT * FROM music m WHERE a = 1"), "Aliasing is not supported");
  EXPECT_EQ(execute("SELECT COUNT(*) FROM music"), "Unexpected path component at 1:8:5");
  EXPECT_EQ(execute("SELECT * FROM music WHERE exists(a)"), "Unrecognized function: exists at 1:27:6");
  for (const char* function :
       {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"})
    EXPECT_EQ(
        execute(fmt::format("SELECT * FROM music WHERE {}()", function)),
        fmt::format(
            "Incorrect number of operands for operator or function; operator or function: {}, number of "
            "operands: 0",
            function));
  EXPECT_EQ(execute("UPDATE music SET s = set_add(s, 'x') WHERE pk='a' AND sk='b'"),
            "The second argument to SET_ADD must be a value with type SET at 1:30:1");
  EXPECT_EQ(execute("UPDATE music SET s = set_add(s, ?) WHERE pk='a' AND sk='b'", R"([{"N":"1"}])"),
            "The second argument to SET_ADD must be a value with type SET");
  EXPECT_EQ(
      execute(R"(SELECT pk FROM "music"."thin" WHERE label = 'l' AND year = 1)"),
      "One or more parameter values were invalid: Secondary index thin does not project one or more filter "
      "attributes: [year]");
  EXPECT_EQ(execute("SELECT * FROM a.b.c"), "A path may contain at most 2 components in the FROM clause");
  EXPECT_EQ(execute("UPDATE music.by_year SET a = 1 WHERE pk = 'a'"),
            "This operation is not supported on an index");
  EXPECT_EQ(execute("SELECT * FROM music WHERE pk = ?"),
            "Number of parameters in request and statement don't match.");
  EXPECT_EQ(execute("SELECT * FROM nowhere WHERE pk = 'a'"), "Requested resource not found");
  EXPECT_EQ(execute("SELECT * FROM music WHERE a < true"),
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL");
  EXPECT_EQ(
      execute("SELECT * FROM music ORDER BY sk"),
      "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.");
  EXPECT_EQ(execute("INSERT INTO music VALUE {'pk':<<>>}"), "Empty bags are not supported");
  EXPECT_EQ(
      execute("DELETE FROM music WHERE pk='a' AND sk='b' RETURNING MODIFIED OLD *"),
      "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is allowed in DELETE "
      "statements.");
}

TEST_P(Statements, AllowCommentsAndAnyCase) {
  fill();
  EXPECT_EQ(
      execute("select sk -- the title\n from /* the */ music where pk = 'acme' and BEGINS_WITH(sk, 'b');"),
      "{\"sk\":{\"S\":\"blue\"}}\n");
}

TEST_P(Statements, RunInBatchesEachForItself) {
  fill();
  EXPECT_EQ(
      batch({"SELECT sk FROM music WHERE pk='acme' AND sk='red'", "SELECT * FROM nowhere WHERE pk='a'",
             "SELECT * FROM music WHERE pk='acme'", "SELECT * FROM music WHERE pk='x' AND sk='y'"}),
      (std::vector<std::string>{
          "{\"sk\":{\"S\":\"red\"}}", "Requested resource not found",
          "Select statements within BatchExecuteStatement must specify the primary key in the where clause.",
          "none"}));
  EXPECT_EQ(batch({"INSERT INTO music VALUE {'pk':'n','sk':'1'}",
                   "INSERT INTO music VALUE {'pk':'acme','sk':'red'}",
                   "DELETE FROM music WHERE pk='zeta' AND sk='blue'"}),
            (std::vector<std::string>{"none", "Duplicate primary key exists in table", "none"}));
  EXPECT_EQ(found("pk = 'n'"), "1 ");
  EXPECT_EQ(
      batch({"SELECT * FROM music WHERE pk='a' AND sk='b'", "DELETE FROM music WHERE pk='a' AND sk='c'"}),
      std::vector<std::string>{"Read and write requests together in the same batch is not supported."});
}

// The statements of the outbox, as its document has them.
TEST_P(Statements, RunTheOutboxAsItIs) {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = "table";
  d.billing_mode = store::BillingMode::pay_per_request;
  d.attributes = {{"Id", item::Type::S}, {"Status", item::Type::S}};
  d.key_schema = {{"Id", store::KeyRole::hash}, {"Status", store::KeyRole::range}};
  d.global_indexes = {
      index("StatusIndex", {"Status"}, {}, store::ProjectionType::include, {"Attributes", "TTL"})};
  ASSERT_TRUE(run(store().create_table(std::move(request))));
  wait_until_active("table");
  put("table", R"({"Attributes":{"M":{"Latest":{"S":"READY"}}},"Id":{"S":"mail-1"},"Status":{"S":"_META"}})");

  const auto change = [&] {
    return transaction(
        {{.text =
              R"(UPDATE "table" SET Attributes.Latest=?, Attributes.UpdatedAt=?, Attributes.Reason=?, TTL=?
WHERE Id=? AND Status=?)",
          .parameters = parameters_of(
              R"([{"S":"SENT"},{"S":"2026-01-01T00:00:00Z"},{"S":""},{"N":"1900000000"},{"S":"mail-1"},{"S":"_META"}])")},
         {.text = R"(INSERT INTO "table" VALUE {'Id': ?, 'Status': ?, 'Attributes': ?, 'TTL': ?})",
          .parameters = parameters_of(R"([{"S":"mail-1"},{"S":"SENT"},{"M":{}},{"N":"1900000000"}])")}});
  };
  EXPECT_EQ(outcome(change()), "ok");
  EXPECT_EQ(
      execute(R"(SELECT Id, Status, Attributes, TTL FROM "table"."StatusIndex" 
WHERE Status=? AND Attributes.Latest =?)",
              R"([{"S":"_META"},{"S":"SENT"}])", 25),
      R"({"Attributes":{"M":{"Latest":{"S":"SENT"},"Reason":{"S":""},)"
      R"("UpdatedAt":{"S":"2026-01-01T00:00:00Z"}}},"Id":{"S":"mail-1"},"Status":{"S":"_META"},"TTL":{"N":"1900000000"}})"
      "\n");
  const auto again = change();
  ASSERT_FALSE(again);
  EXPECT_SAYS(
      again.error().message,
      "Transaction cancelled, please refer cancellation reasons for specific reasons [None, DuplicateItem]");
}

TEST_P(Statements, RunInTransactions) {
  fill();
  EXPECT_EQ(
      outcome(transaction({{.text = "EXISTS(SELECT * FROM music WHERE pk='acme' AND sk='red' AND year=2015)"},
                           {.text = "DELETE FROM music WHERE pk='zeta' AND sk='blue'"}},
                          "token")),
      "ok");
  EXPECT_EQ(found("pk = 'zeta'"), "");
  EXPECT_EQ(
      outcome(transaction({{.text = "EXISTS(SELECT * FROM music WHERE pk='acme' AND sk='red' AND year=2015)"},
                           {.text = "DELETE FROM music WHERE pk='zeta' AND sk='blue'"}},
                          "token")),
      "ok");
  const auto read = transaction({{.text = "SELECT sk FROM music WHERE pk='acme' AND sk='red'"},
                                 {.text = "SELECT sk FROM music WHERE pk='acme' AND sk='none'"}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(json_of(*read->responses[0]), "{\"sk\":{\"S\":\"red\"}}");
  EXPECT_FALSE(read->responses[1]);
  EXPECT_SAYS(outcome(transaction({{.text = "SELECT * FROM music WHERE pk='acme' AND sk='red'"},
                                   {.text = "DELETE FROM music WHERE pk='acme' AND sk='red'"}})),
              "ExecuteTransaction API does not support both read and write operations in the same request.");
  EXPECT_SAYS(
      outcome(transaction({{.text = "EXISTS(SELECT * FROM music WHERE pk='acme' AND sk='red')"}})),
      "Validation failed in TransactStatements[0]: EXISTS() must contain a single item read with additional "
      "condition");
  EXPECT_SAYS(outcome(transaction({{.text = "DELETE music"}})),
              "Validation failed in TransactStatements[0]: Statement wasn't well formed, can't be processed: "
              "Expected "
              "'FROM'");
  EXPECT_SAYS(outcome(transaction({{.text = "DELETE FROM music WHERE pk='acme' AND sk='red'"},
                                   {.text = "DELETE FROM music WHERE pk='acme' AND sk='red'"}})),
              "Transaction request cannot include multiple operations on one item");
}

TABELLA_CONTRACT(Statements);

}  // namespace
}  // namespace tabella::contract
