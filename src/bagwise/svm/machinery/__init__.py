"""What support vector machines on bags share: problems, trainers, representations, bases."""
