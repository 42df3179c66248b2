"""`python -m keras_bert_cli` is the command too."""

from keras_bert_cli.main import main

main()
