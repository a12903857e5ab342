"""Words of other languages go in; the English words of tool descriptions come out.

Sentence vectors carry the sense of a foreign question but blur its terms; a few hundred exact ones
let names and descriptions be compared as words again. Only words that the catalogue itself does not
know are looked up, so a catalogue in another language is left alone.
"""

import re
import unicodedata

_ENTRIES = """
list: auflist zeig lista listar muestra mostrar muestrame affich montre 一覧 表示 列表 列出 显示
all: alle todos todas toutes 全部 所有 すべて
create: erstell anleg erzeug crea crear cree creer 作成 作って 创建 創建 新建 生成 建立
delete: losch entfern elimin borra borrar supprim effac 削除 删除 刪除 移除
update: aktualisier ander actualiz modific mettre modifi 更新 変更 修改 编辑
rename: umbenenn benenn renombr renomm 名前を変更 改名 重命名
get: abruf hol obten obtener recuper obteni 取得 获取 獲取
read: lies lesen leer lis lire 読んで 読み取 読む 读取 阅读
write: schreib escrib ecri ecris 書き込 書いて 写入 写
send: send schick sende envia enviar envoi 送信 送って 送る 发送 發送
search: such busca buscar cherch recherch 検索 探して 搜索 查找 寻找 找一下
open: offn abrir abre ouvr 開いて 打开
start: start beginn empiez inicia commenc demarr 始めて 開始 启动 开始
stop: stopp beend deten termin arret 停止 終了 终止 结束
download: herunterlad lade descarg telecharg ダウンロード 下载
upload: hochlad subir sube televers アップロード 上传
convert: umwand wandl konvertier umrechn conviert convertir converti 変換 转换 转成 换算
compare: vergleich compara compar 比較 比较
merge: zusammenfuhr fusion une 結合 マージ 合并
split: aufteil teile divid divis 分割 拆分
calculate: berechn calcul 計算 计算
translate: ubersetz traduc traduis 翻訳 翻译
summarize: zusammenfass resum 要約 总结 摘要
check: pruf uberpruf comprueb verific verifi 確認 检查
buy: kauf compra achet 購入 购买
file: datei archivo fichier ファイル 文件
folder directory: ordner verzeichnis carpet dossier repertoir フォルダ ディレクトリ 文件夹 目录
document: dokument documento ドキュメント 文書 文档
text: textdatei texto texte テキスト 文本 文字
image: bild imagen 画像 图片 图像
icon: symbol icono icone アイコン 图标
shopping cart: einkaufswag carrit panier ショッピングカート 购物车
video: vidéo 動画 ビデオ 视频
audio: tonaufnahm 音声 音频
music song: lied musik cancion chanson morceau 音楽 曲 歌曲 这首歌 音乐
tempo: tempo テンポ 节奏
speech: sprach voz voix vocal 音声 語音 语音
table: tabell tabla tableau テーブル 表格
sheet: blatt hoja feuill シート 工作表
chart: diagramm grafic graphiqu グラフ チャート 图表
pie chart: kreisdiagramm tortendiagramm 円グラフ 饼图
line chart: liniendiagramm courb 折れ線グラフ 折线图
organization chart: organigramm 組織図 组织结构图
mind map: mindmap マインドマップ 思维导图
screenshot: bildschirmfoto captura スクリーンショット 截图
page: webseit seite pagina page ページ 网页
browser: navegador navigateur ブラウザ 浏览器
web internet: internet ウェブ インターネット 网上 互联网
link: verknupf enlac lien リンク 链接
weather: wetter tiempo clima meteo 天気 天气
temperature: temperatur 気温 温度
time: uhrzeit spat hora heure 時間 何時 时间 几点
date: datum fecha 日付 日期
calendar: kalender calendari calendrier カレンダー 日历
meeting: treffen besprech reunion rendez 会議 会议
meeting point: treffpunkt 待ち合わせ 见面地点
email: mail correo courriel メール 邮件
sms message: nachricht mensaj messag メッセージ 短信 消息
phone number: telefonnummer telefono telephon 電話番号 电话号码
notification: benachrichtig notificac notifi 通知
user: benutzer nutzer usuari utilisateur ユーザー 用户
group: grupp grupo groupe グループ 组
password: passwort kennwort contrasen mot パスワード 密码
secret: geheimnis secreto シークレット 机密 密钥
key: schlussel clave cle キー 键
account: konto konten cuenta compt アカウント 账户 帐户
storage: speicher almacen stockag ストレージ 存储
storage account: speicherkont
subscription: abonnement suscripc サブスクリプション 订阅
resource: ressourc recurs リソース 资源
virtual machine vm: maschin maquin machin 仮想マシン 虚拟机
database: datenbank base データベース 数据库
server: servidor serveur サーバー 服务器
container: contened conteneur コンテナ 容器
cluster: grappe クラスタ 集群
network: netzwerk red reseau ネットワーク 网络
cache: zwischenspeich antememor キャッシュ 缓存
log: protokoll registro journal ログ 日志
process: prozess proces 処理 プロセス 进程
running: laufend ejecuc execut 実行中 正在运行
security vulnerability: sicherheitsluck vulnerab 脆弱性 漏洞
version: versión バージョン 版本
latest: neuest ultim dernier 最新 最近
size: groß gross tamano taille サイズ 大小
alternative: alternativ 代わり 替代
difference: unterschied diferenci differenc 違い 差异
code: quelltext código コード 代码
repository: depot repositori リポジトリ 仓库
branch: zweig rama branche ブランチ 分支
commit: confirmac コミット 提交
pull request: プルリクエスト 拉取请求
issue: incidenci ticket 課題 问题
test: prueba テスト 测试
error: fehler errore erreur エラー 错误
stock: aktie accion action 株 股票
stock price: aktienkurs 株価 股价
price: preis kurs precio prix 価格 价格
dividend: dividend 配当 股息
income statement: gewinn resultat 損益計算書 利润表
exchange rate currency: wechselkurs cambio chang 為替 汇率
money: geld dinero argent お金 钱
news: nachrichten noticia nouvell actualit ニュース 新闻
article paper: artikel fachartikel articul articl 論文 记事 论文 文章
book: buch libro livre 本を 书籍
recipe: rezept receta recett レシピ 食谱 做法
restaurant: restaurante レストラン 餐厅
hotel: unterkunft alojamient logement 宿 酒店 民宿
flight: flug vuelo vol フライト 航班
route directions: strecke weg ruta itinerair 道順 ルート 路线 怎么走
address: adress direccion 住所 地址
coordinate: koordinat coordenad coordonn 座標 坐标
map: karte mapa carte 地図 地图
nearby: nahe cerca proxim pres 近く 附近
parking: parkplatz aparcam parking 駐車場 停车场
charging station: ladestation ladesaul carga recharg 充電 充电站
school: schule escuela ecole 学校
city: stadt ciudad ville 都市 城市
museum painting: gemald cuadr tableaux 美術館 絵 画作 博物馆
game: spiel partid juego jeu 対局 ゲーム 游戏
chess: schach ajedrez echec チェス 国际象棋
move: zug zuge movim coup 指せる 走法
clinical trial: studie ensay essai 臨床試験 临床试验
cancer: krebs cancer がん 癌
domain: domäne dominio domaine ドメイン 域名
owner: gehort pertenec appartient 所有者 属于
presentation: prasentation presentac プレゼン 演示文稿
task: aufgab tarea tache タスク 任务
note: notiz nota ノート メモ 笔记
comment: kommentar comentari commentair コメント 评论
employee: mitarbeiter emplead employe 社員 员工
customer: kund client 顧客 客户
invoice: rechnung factur facture 請求書 发票
order: bestellung pedid command 注文 订单
product: produkt product produit 商品 产品
"""
_SHORTEST, _LONGEST_TAIL = 3, 5
"""Letters of a form; letters that an inflected word may have beyond it."""


def _fold(text: str) -> str:
    """Lower case without accents: `Löschen` and `loschen` are one."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _read_entries() -> dict[str, str]:
    forms: dict[str, str] = {}
    for line in _ENTRIES.strip().splitlines():
        english, _, foreign = line.partition(": ")
        for form in foreign.split():
            forms.setdefault(form if form >= FIRST_UNSPACED else _fold(form), english)
    return forms


FIRST_UNSPACED = "\u3000"
_FORMS = _read_entries()
_UNSPACED = re.compile(
    "|".join(sorted((f for f in _FORMS if f >= FIRST_UNSPACED), key=lambda f: (-len(f), f)))
)
_FOREIGN = """
    der das ein eine einen einer dem den und für mit von zu im auf ist sind ich mir mein meine alle
    welche wie wo el los las un una unos del en con por para que qué cuál mi mis es cómo dónde al
    le les des du une et dans pour avec sur quel quelle quels mon ma mes est où ce cette
    à d'un d'une
"""
_ENGLISH = """
    the of my for to is and with please this that what how from show me in on by are do does can
    which where your our it
"""
FOREIGN, ENGLISH = (frozenset(text.split()) for text in (_FOREIGN, _ENGLISH))


def is_foreign(text: str) -> bool:
    """Whether a text's small words are German, Spanish or French rather than English."""
    small = text[:1_000].casefold().split()
    if FOREIGN.isdisjoint(small):
        return False
    foreign = sum(map(FOREIGN.__contains__, small))
    return foreign > sum(map(ENGLISH.__contains__, small))


def translate_word(word: str) -> str:
    """English for a word of German, Spanish or French; empty when it is not in here."""
    folded = _fold(word)
    for length in range(len(folded), max(_SHORTEST, len(folded) - _LONGEST_TAIL) - 1, -1):
        english = _FORMS.get(folded[:length])
        if english and (length == len(folded) or length > _SHORTEST):
            return english
    return ""


def translate_unspaced(text: str) -> str:
    """Replace the Chinese and Japanese terms that are in here by English ones."""
    return _UNSPACED.sub(lambda match: f" {_FORMS[match[0]]} ", text)
