"""Words of other languages and the English words the stand-in model reads them as."""

from collections.abc import Mapping
from types import MappingProxyType

JAPANESE = """
一覧=list 表示=show 見せ=show 教え=show 取得=get 確認=check 探し=find 検索=search 調べ=find
読ん=read 作成=create 作っ=create 追加=add 登録=register 生成=generate 削除=delete 消し=delete
更新=update 変更=change 設定=setting 送信=send 送っ=send 送る=send 発行=publish 実行=run
再起動=restart 計算=calculate 翻訳=translate ストレージ=storage アカウント=account
サブスクリプション=subscription リソースグループ=group リソース=resource 仮想マシン=vm
ディスク=disk データベース=database テーブル=table サーバー=server サーバ=server
クラスター=cluster クラスタ=cluster コンテナー=container コンテナ=container レジストリ=registry
シークレット=secret 証明書=certificate キー=key キーコンテナー=keyvault 鍵=key ボルト=vault
ログ=log メトリック=metric メトリクス=metric ブロブ=blob ファイル=file 共有=share キュー=queue
トピック=topic メール=email 電子メール=email メッセージ=message 電話=phone 音声=speech
ファイアウォール=firewall 規則=rule ルール=rule 価格=pricing 料金=pricing 天気=weather
天候=weather 気温=temperature 予定=calendar 会議=meeting 株価=stock 為替=currency 時刻=time
課題=issue ブック=workbook ワークスペース=workspace アプリ=app 関数=function 推奨=recommendation
役割=role ロール=role ポリシー=policy 東京=tokyo 大阪=osaka
"""
CHINESE = """
列出=list 显示=show 查看=show 获取=get 查询=query 搜索=search 创建=create 新建=create
删除=delete 更新=update 修改=change 发送=send 存储=storage 账户=account 帐户=account
订阅=subscription 资源组=group 虚拟机=vm 磁盘=disk 数据库=database 服务器=server 集群=cluster
容器=container 密钥=key 机密=secret 证书=certificate 日志=log 文件=file 邮件=email 短信=sms
天气=weather 价格=pricing
"""
SPACED = """
zeige=show zeig=show liste=list auflisten=list erstelle=create erstellen=create anlegen=create
lösche=delete löschen=delete ändere=change sende=send schicke=send suche=search
speicherkonto=storage_account speicherkonten=storage_account datenbank=database
datenbanken=database wetter=weather schlüssel=key geheimnis=secret zertifikat=certificate
festplatte=disk abonnement=subscription ressourcengruppe=group affiche=show montre=show
lister=list crée=create créer=create supprime=delete supprimer=delete envoie=send envoyer=send
compte=account stockage=storage comptes=account base=base données=data météo=weather clé=key
disque=disk courriel=email muestra=show muéstrame=show lista=list crea=create elimina=delete
borra=delete envía=send cuenta=account cuentas=account almacenamiento=storage clima=weather
correo=email disco=disk contraseña=password archivo=file archivos=file suscripción=subscription
"""


def _table(text: str) -> Mapping[str, str]:
    pairs = (pair.split("=") for pair in text.split())
    return MappingProxyType({foreign: english.replace("_", " ") for foreign, english in pairs})


UNSPACED = MappingProxyType({**_table(CHINESE), **_table(JAPANESE)})
"""Looked up inside runs of text that has no spaces, the longest word first."""
WORDS = _table(SPACED)
"""Looked up word by word."""
