"""A message goes in; whether it is only thanks or a greeting, or only a yes, comes out."""

import re

_THANKS = """
    thanks thank thx cheers hello hi hey bye goodbye welcome lol haha congrats
    danke dankeschön hallo tschüss servus gracias hola adiós merci bonjour salut bonsoir grazie ciao
    buongiorno obrigado obrigada olá tchau bedankt hoi tack hej tak takk hei kiitos moi dziękuję
    cześć спасибо привет пока дякую teşekkürler merhaba σας ευχαριστώ
    شكرا مرحبا תודה שלום धन्यवाद नमस्ते
"""
_YES = """
    yes yep yeah sure ok okay absolutely proceed continue confirm confirmed agreed
    ja genau klar gerne mach weiter sí si claro vale dale adelante oui allez continuez va certo
    procedi sim pode isso да давай evet tamam نعم हाँ
"""
_FILLER = """
    a about again all and are at awesome before best bit both but can cool day did do does done dont
    everything evening excellent fantastic fine for friend friends glad go good got great guys have
    having help helped helpful how i im in is it just know last later lot love lovely luck many me
    minute moment morning most much my need never nice night no not now of on one only our perfect
    please problem quick quite really right see so some soon sounds super talk that thats the there
    they this to today tonight too very was we weekend well went what will wonderful works worries
    would you your youre ahead then them
    bist das der dir du es für gut hat hilfe hilfreich mir sehr super vielen viele war wie wirklich
    bitte schön morgen abend tag tun
    ayuda bien buenos buenas de días eres estás fue ha has la las los me mi muchas mucho muy noches
    por que qué sido su tal tardes todo tu útil usted hazlo
    aide avez beaucoup bien bonne ce comment c'est était et fait faites journée le les m'a pour très
    tu un une utile va vas vous votre s'il plaît
    molto mille è stato utile aiuto per il fai lo
    muito ajuda pela pelo foi bom boa tudo faça
    большое очень помог помогло за помощь это было всё как дела
"""
_UNSPACED_THANKS = re.compile(
    "ありがとうございました|ありがとうございます|ありがとう|どうも|こんにちは|こんばんは|おはようございます|おはよう"
    "|さようなら|お疲れ様でした|お疲れ様です|助かりました|谢谢你|谢谢您|谢谢|多谢|感谢|你好吗|你好|您好|再见|早上好|晚安"
    "|謝謝你|謝謝您|謝謝|感謝|감사합니다|고마워요|고마워|고맙습니다|안녕하세요|안녕|ขอบคุณ|สวัสดี"
)
_UNSPACED_YES = re.compile(
    "はい|お願いします|そうしてください|いいよ|うん|好的|好啊|可以|是的|继续|行吧|没问题|네|예|좋아요|그래요|ใช่|ตกลง"
)
_UNSPACED_FILLER = re.compile(
    "本当に|とても|大変|すごく|役に立ちました|役立ちました|助かった|です|ました|ね|よ|あなたの|的帮助|帮助|帮忙|真的"
    "|非常|很有用|有用|很有|太|了|你的|您的|对我|정말|많이|도움이|되었습니다|됐어요|ครับ|ค่ะ|มาก"
)
THANKS, YES, FILLER = (frozenset(text.split()) for text in (_THANKS, _YES, _FILLER))
MAX_CHARS = 160
"""A longer message says something."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")


def is_small_talk(text: str) -> bool:
    """Whether nothing is asked for: thanks, a greeting, a goodbye, an emoji."""
    rest, thanked = _split(text, _UNSPACED_THANKS)
    if len(text) > MAX_CHARS:
        return False
    known = THANKS | YES | FILLER
    return all(word in known for word in rest) and (
        thanked or not rest or any(word in THANKS for word in rest)
    )


def is_consent(text: str) -> bool:
    """Whether the message only says yes to what was proposed before."""
    rest, agreed = _split(text, _UNSPACED_YES)
    if len(text) > MAX_CHARS:
        return False
    return all(word in YES or word in FILLER for word in rest) and (
        agreed or any(word in YES for word in rest) or {"do", "it"} <= set(rest)
    )


def _split(text: str, phrases: re.Pattern[str]) -> tuple[list[str], bool]:
    """Words that are left when phrases of unspaced scripts and their filler are cut out."""
    cut, count = phrases.subn(" ", text[: MAX_CHARS + 1].casefold())
    if count:
        cut = _UNSPACED_FILLER.sub(" ", cut)
    return [word.replace("’", "'") for word in _WORD.findall(cut)], count > 0
