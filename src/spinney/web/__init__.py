"""The dashboard: answers as pages in a browser, live, each with the rights of its reader."""
