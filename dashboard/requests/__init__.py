"""What is done with each request: who may ask, whose turn it is, how an answer is written."""
