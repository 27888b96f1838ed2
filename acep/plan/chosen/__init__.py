"""Plan SASE+ queries whose chosen matches are found in their order."""
