"""The Iowa gambling task: four decks of cards, its learners and its measures."""
