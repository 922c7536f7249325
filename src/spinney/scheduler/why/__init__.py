"""Why a gang waits, in words: sentences, advice and explanations. No module that decides imports it."""
