"""Pictures and pages for a person to look at, of what a classifier does right and wrong."""

from keras_bert.reports.classification_report import write_report

__all__ = ["write_report"]
