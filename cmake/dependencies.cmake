# Everything comes from Debian 12's packages; scripts/install.sh names them.
macro(tabella_needs)
  find_package(${ARGV} REQUIRED)
endmacro()
macro(tabella_needs_library VARIABLE NAME)
  find_library(${VARIABLE} ${NAME} REQUIRED)
endmacro()
include(${CMAKE_CURRENT_LIST_DIR}/library_dependencies.cmake)

find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(GTest REQUIRED)
find_package(absl REQUIRED)  # time zones

# MariaDB's client library, which speaks to MySQL as well.
find_path(MARIADB_INCLUDE mysql.h PATH_SUFFIXES mariadb REQUIRED)
find_library(MARIADB_LIBRARY mariadb REQUIRED)
add_library(mariadb INTERFACE)
target_include_directories(mariadb SYSTEM INTERFACE ${MARIADB_INCLUDE})
target_link_libraries(mariadb INTERFACE ${MARIADB_LIBRARY})

# The allocator of the release binary. Sanitizers bring their own.
if(NOT TABELLA_SANITIZE)
  find_library(JEMALLOC_LIBRARY libjemalloc.a REQUIRED)
endif()
