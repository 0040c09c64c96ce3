#include "outbox/mysql_url.h"

#include <gtest/gtest.h>

namespace tabella::outbox {
namespace {

TEST(MysqlUrl, HasUserPasswordHostPortAndDatabase) {
  const auto url = parse_mysql_url("mysql://post:p%40ss%2Fw%3Ard@DB.example.com:3307/out%20box").value();
  EXPECT_EQ(url.user, "post");
  EXPECT_EQ(url.password, "p@ss/w:rd");
  EXPECT_EQ(url.host, "db.example.com");
  EXPECT_EQ(url.port, 3307);
  EXPECT_EQ(url.database, "out box");
  EXPECT_EQ(url.tls, MysqlUrl::Tls::off);
  EXPECT_EQ(url.shown(), "db.example.com:3307/out box");
}

TEST(MysqlUrl, HasDefaults) {
  const auto url = parse_mysql_url("mysql://root@[::1]/mail").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 3306);
  EXPECT_EQ(url.password, "");
  EXPECT_EQ(url.shown(), "[::1]:3306/mail");
}

TEST(MysqlUrl, HasOptions) {
  const auto url =
      parse_mysql_url("mysql://u@/mail?socket=/run/my%26sql.sock&tls=verify&ca=/etc/ca.pem").value();
  EXPECT_EQ(url.socket, "/run/my&sql.sock");
  EXPECT_EQ(url.tls, MysqlUrl::Tls::verify);
  EXPECT_EQ(url.ca_file, "/etc/ca.pem");
  EXPECT_EQ(parse_mysql_url("mysql://u@h/d?tls=required").value().tls, MysqlUrl::Tls::required);
}

TEST(MysqlUrl, SaysWhatIsWrongWithoutThePassword) {
  for (const auto* text :
       {"http://u:secret@h/d", "mysql:u:secret@h/d", "mysql://u:secret@h", "mysql://u:secret@h/",
        "mysql://h:3306/d", "mysql://:secret@h/d", "mysql://u:secret%@h/d", "mysql://u:secret%00@h/d",
        "mysql://u:secret@/d", "mysql://u:secret@h:0/d", "mysql://u:secret@h:99999/d",
        "mysql://u:secret@h:x/d", "mysql://u:secret@[::1/d", "mysql://u:secret@h h/d",
        "mysql://u:se/secret@h/d", "mysql://u:secret@h/d?tls=maybe", "mysql://u:secret@h/d?colour=secret",
        "mysql://u:secret@h/d?socket=here"}) {
    const auto url = parse_mysql_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().find("secret"), std::string::npos) << url.error();
  }
}

}  // namespace
}  // namespace tabella::outbox
