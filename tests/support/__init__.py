"""What the tests lean on: scripted and recorded servers, processes, the real SGLang."""
