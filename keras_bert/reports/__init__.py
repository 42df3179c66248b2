"""Figures and pages on a classifier's results and mistakes."""

from keras_bert.reports.classification_report import write_report

__all__ = ["write_report"]
