#!/bin/sh
# Rewrites the results in src/ui/composer/vim/table.txt with vim itself. Needs vim (`apt-get install vim`).
#
# A row is: text with cursor, keys, result with cursor. Columns are separated by tabs; `|` is before the character at
# the cursor, `\n` is a line break, and keys have the names of vim.
set -eu
table=$(cd "$(dirname "$0")/../.." && pwd)/src/ui/composer/vim/table.txt
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'VIM'
set encoding=utf-8 shiftwidth=4 expandtab noautoindent nojoinspaces nomore
let s:rows = []
for s:row in readfile($TABLE)
  if s:row =~# '^#' || s:row ==# ''
    call add(s:rows, s:row)
    continue
  endif
  let s:cells = split(s:row, "\t", 1)
  enew!
  for s:name in split('0123456789abcdefghijklmnopqrstuvwxyz-', '\zs')
    call setreg(s:name, '')
  endfor
  let @/ = ''
  let s:lines = split(s:cells[0], '\\n', 1)
  let s:at = indexof(s:lines, {_, line -> line =~# '|'})
  let s:col = stridx(s:lines[s:at], '|')
  let s:lines[s:at] = substitute(s:lines[s:at], '|', '', '')
  call setline(1, s:lines)
  call cursor(s:at + 1, s:col + 1)
  " Start an undo step of its own.
  let &undolevels = &undolevels
  call feedkeys(substitute(s:cells[1], '<\([A-Za-z-]\+\)>', '\=eval("\"\\<" .. submatch(1) .. ">\"")', 'g'), 'tx')
  let s:now = getline(1, '$')
  let s:at = line('.') - 1
  let s:col = col('.') - 1
  let s:now[s:at] = strpart(s:now[s:at], 0, s:col) .. '|' .. strpart(s:now[s:at], s:col)
  call add(s:rows, s:cells[0] .. "\t" .. s:cells[1] .. "\t" .. join(s:now, '\n'))
endfor
call writefile(s:rows, $TABLE)
qall!
VIM
TABLE="$table" TERM=dumb vim -u NONE -i NONE -N -n --not-a-term -S "$script" < /dev/null > /dev/null 2>&1
