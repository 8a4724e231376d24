"""C-Eval (Huang et al. 2023): Chinese multiple choice in 52 subjects; the labelled split, ``val``, is asked."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, subset_key, text_id
from specforge.datasets.prompts import letter_of
from specforge.scoring.choice import ChoiceReference

# The official mapping of subjects to their Chinese names and groups.
STEM = {
    "computer_network": "计算机网络",
    "operating_system": "操作系统",
    "computer_architecture": "计算机组成",
    "college_programming": "大学编程",
    "college_physics": "大学物理",
    "college_chemistry": "大学化学",
    "advanced_mathematics": "高等数学",
    "probability_and_statistics": "概率统计",
    "discrete_mathematics": "离散数学",
    "electrical_engineer": "注册电气工程师",
    "metrology_engineer": "注册计量师",
    "high_school_mathematics": "高中数学",
    "high_school_physics": "高中物理",
    "high_school_chemistry": "高中化学",
    "high_school_biology": "高中生物",
    "middle_school_mathematics": "初中数学",
    "middle_school_biology": "初中生物",
    "middle_school_physics": "初中物理",
    "middle_school_chemistry": "初中化学",
    "veterinary_medicine": "兽医学",
}
SOCIAL_SCIENCE = {
    "college_economics": "大学经济学",
    "business_administration": "工商管理",
    "marxism": "马克思主义基本原理",
    "mao_zedong_thought": "毛泽东思想和中国特色社会主义理论体系概论",
    "education_science": "教育学",
    "teacher_qualification": "教师资格",
    "high_school_politics": "高中政治",
    "high_school_geography": "高中地理",
    "middle_school_politics": "初中政治",
    "middle_school_geography": "初中地理",
}
HUMANITIES = {
    "modern_chinese_history": "近代史纲要",
    "ideological_and_moral_cultivation": "思想道德修养与法律基础",
    "logic": "逻辑学",
    "law": "法学",
    "chinese_language_and_literature": "中国语言文学",
    "art_studies": "艺术学",
    "professional_tour_guide": "导游资格",
    "legal_professional": "法律职业资格",
    "high_school_chinese": "高中语文",
    "high_school_history": "高中历史",
    "middle_school_history": "初中历史",
}
OTHER = {
    "civil_servant": "公务员",
    "sports_science": "体育学",
    "plant_protection": "植物保护",
    "basic_medicine": "基础医学",
    "clinical_medicine": "临床医学",
    "urban_and_rural_planner": "注册城乡规划师",
    "accountant": "注册会计师",
    "fire_engineer": "注册消防工程师",
    "environmental_impact_assessment_engineer": "环境影响评价工程师",
    "tax_accountant": "税务师",
    "physician": "医师资格",
}
SUBJECTS = {**STEM, **SOCIAL_SCIENCE, **HUMANITIES, **OTHER}

LETTERS = ("A", "B", "C", "D")


def prompt(text: str, options: tuple[str, ...], subject: str = "") -> str:
    """C-Eval's own opening sentence, then chain of thought and a last line ``答案：X``."""
    exam = f"中国关于{subject}考试的" if subject else ""
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True))
    return (
        f"以下是{exam}单项选择题，请选出其中的正确答案。\n\n{text.strip()}\n{listed}\n\n"
        "请一步一步地思考，并在最后一行按照“答案：X”的格式给出答案，其中X是A、B、C、D中的一个字母。"
    )


def question(row: Row) -> Question:
    """Zero-shot chain of thought in Chinese; results are reported by subject."""
    subject = str(row.get("subject") or "")
    options = tuple(str(row[letter]).strip() for letter in LETTERS)
    return Question(
        prompt(str(row["question"]), options, SUBJECTS.get(subset_key(subject), "")),
        reference=ChoiceReference(letter_of(row["answer"], len(LETTERS)), options),
        category=subject,
    )


def row_id(row: Row) -> str:
    """The subject and the id, which counts within the subject."""
    subject, number = str(row.get("subject") or ""), row.get("id")
    own = text_id(str(row["question"])) if number in (None, "") else str(number)
    return f"{subject}/{own}" if subject else own


DATASET = DatasetDefinition(
    name="ceval",
    parts=tuple(HubPart("ceval/ceval-exam", "val", config=subject, label=subject) for subject in SUBJECTS),
    question=question,
    row_id=row_id,
    columns=("question", *LETTERS, "answer"),
    scorer="choice",
    max_new_tokens=4096,
    axes=(
        SubsetAxis(
            "subject",
            lambda row: str(row.get("subject") or ""),
            tuple(SUBJECTS),
            groups={
                "stem": tuple(STEM),
                "social_science": tuple(SOCIAL_SCIENCE),
                "humanities": tuple(HUMANITIES),
                "other": tuple(OTHER),
            },
            labelled=True,
        ),
    ),
    aliases=("c-eval",),
)
