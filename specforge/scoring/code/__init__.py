"""Scoring of code: HumanEval, MBPP and LiveCodeBench."""

from specforge.scoring.code.livecode import livecode_task
from specforge.scoring.code.scorer import CodeScorer
from specforge.scoring.code.tasks import CodeTask, HumanEvalTask, IoTest, LiveCodeTask, MbppTask

__all__ = ["CodeScorer", "CodeTask", "HumanEvalTask", "IoTest", "LiveCodeTask", "MbppTask", "livecode_task"]
