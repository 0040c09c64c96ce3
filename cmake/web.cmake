# What Tabella serves to browsers: TypeScript under web/, bundled and compressed by esbuild, as C++ that a room links.
find_program(NPM npm REQUIRED)
find_program(NODE NAMES node nodejs REQUIRED)
set(WEB ${CMAKE_SOURCE_DIR}/web)
set(WEB_MODULES ${CMAKE_BINARY_DIR}/web/node_modules)

# Of the versions that the lock file names; nothing of them runs when it is installed.
add_custom_command(OUTPUT ${WEB_MODULES}/.package-lock.json
  COMMAND ${CMAKE_COMMAND} -E copy ${WEB}/package.json ${WEB}/package-lock.json ${WEB}/.npmrc ${CMAKE_BINARY_DIR}/web/
  COMMAND ${NPM} ci --ignore-scripts --no-fund --no-audit --silent
  COMMAND ${CMAKE_COMMAND} -E touch ${WEB_MODULES}/.package-lock.json
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/web
  DEPENDS ${WEB}/package.json ${WEB}/package-lock.json
  COMMENT "Installing what the web pages are made with")

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/web)
file(GLOB BELL CONFIGURE_DEPENDS ${WEB}/inbox/*.ts)
set(BELL_SCRIPT ${CMAKE_BINARY_DIR}/web/inbox_script.cpp)
add_custom_command(OUTPUT ${BELL_SCRIPT}
  COMMAND ${CMAKE_COMMAND} -E env NODE_MODULES=${WEB_MODULES} ${NODE} ${WEB}/build.mjs ${BELL_SCRIPT}
  DEPENDS ${BELL} ${WEB}/build.mjs ${WEB}/tsconfig.json ${WEB_MODULES}/.package-lock.json
  COMMENT "Bundling the bell")
target_sources(inbox PRIVATE ${BELL_SCRIPT})
