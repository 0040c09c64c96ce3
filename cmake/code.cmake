# How our own code is compiled, whichever target it is in.
set(TABELLA_WARNINGS -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough
  -Wno-missing-designated-field-initializers -Wno-missing-field-initializers)

# With TABELLA_UNITY the files of a target are compiled in batches, so file-local names of a room must differ: give a
# constant or a helper a name that says whose it is, or share it. The size keeps a batch under twenty seconds, and
# there are enough of them for two cores to end together.
set(TABELLA_BATCH 10)

function(tabella_code TARGET)
  target_compile_options(${TARGET} PRIVATE ${TABELLA_WARNINGS})
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ${TABELLA_UNITY} UNITY_BUILD_BATCH_SIZE ${TABELLA_BATCH})
endfunction()
