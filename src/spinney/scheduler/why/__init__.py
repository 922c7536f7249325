"""Why a gang waits, in words: sentences, advice and explanations. Imported by nobody who decides."""
