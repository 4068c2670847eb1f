# SPDX-License-Identifier: MIT
# zsh -f completion.zsh FOLDER LINE: prints what zsh shows for LINE and a tab, with the completions of FOLDER. Completion lives in
# zsh's line editor, so that it needs a terminal: a pseudo one.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; stty cols 400 rows 100; TERM=dumb; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; \
zstyle ':completion:*' list-separator ' '; LISTMAX=0; \
show() { zle list-choices; zle -R; print; print all''-shown }; zle -N show; bindkey '^I' show; echo rea''dy"
while [[ $shown != *ready* ]]; do zpty -r shell chunk || exit 1; shown+=$chunk; done
zpty -n -w shell "$2"$'\t'
shown=
while [[ $shown != *all-shown* ]]; do zpty -r shell chunk || exit 1; shown+=$chunk; done
print -r -- "$shown"
zpty -d shell
